//! The runtime of the process, and the state of the calling thread.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::abi::{self, plait_engine, plait_runtime, plait_status, plait_thread};
use crate::error::{Error, Kind, Result};
use crate::library::{Folders, Library};

struct Component {
    package: &'static str,
    name: &'static str,
    optional: bool,
    avx2: bool,
}

include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// The table of the runtime, which stays valid until the process ends.
struct Runtime(&'static plait_runtime);
// Its functions may be called from any thread.
unsafe impl Sync for Runtime {}
unsafe impl Send for Runtime {}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

/// Load the libraries of plait, once for the process; later calls do nothing.
///
/// `folders` are separated by colons; in each, a library lies directly, or in `plait_core/lib` and
/// so on, as in the folder where packages of Python are installed. None means the folders that
/// `PLAIT_LIBRARIES` in the environment names.
pub fn load(folders: Option<&str>) -> Result<()> {
    let _lock = LOADING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if RUNTIME.get().is_some() {
        return Ok(());
    }
    let folders = Folders::new(folders)?;
    let (runtime, components) = COMPONENTS.split_first().expect("the runtime is the first one");
    let library = Library::open(folders.require(runtime.package, runtime.name)?)?;
    let functions = abi::Functions::find(&library)?;
    let runtime = unsafe {
        let runtime = (functions.plait_runtime_v0)();
        if runtime.is_null() {
            let text = CStr::from_ptr((functions.plait_runtime_refusal)());
            return Err(Error::new(Kind::Runtime, text.to_string_lossy()));
        }
        &*runtime
    };
    let kernels = components.iter().filter(|each| each.name.starts_with("plait_cpu"));
    if kernels.clone().all(|each| folders.find(each.package, each.name).is_none()) {
        folders.require("plait_core", "plait_cpu_base")?;
    }
    for each in components {
        if each.avx2 && !has_avx2() {
            continue;
        }
        let found = match each.optional {
            true => folders.find(each.package, each.name),
            false => Some(folders.require(each.package, each.name)?),
        };
        let Some(path) = found else { continue };
        let path = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("it is a file");
        let thread = unsafe { runtime.thread.expect("in every runtime")() };
        let load = runtime.load.expect("in every runtime");
        check_on(runtime, thread, unsafe { load(thread, path.as_ptr()) })?;
    }
    let _ = RUNTIME.set(Runtime(runtime));
    Ok(())
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The runtime, or an error before `load`.
pub fn runtime() -> Result<&'static plait_runtime> {
    let text = "plait is not loaded: call plait::load first";
    RUNTIME.get().map(|runtime| runtime.0).ok_or_else(|| Error::new(Kind::Runtime, text))
}

/// The state of the calling thread.
pub fn thread() -> Result<*mut plait_thread> {
    Ok(unsafe { runtime()?.thread.expect("in every runtime")() })
}

/// Turn a status into a result, with the text that the thread has.
pub fn check(thread: *mut plait_thread, status: plait_status) -> Result<()> {
    check_on(runtime()?, thread, status)
}

fn check_on(runtime: &plait_runtime, thread: *mut plait_thread, status: i32) -> Result<()> {
    if status >= 0 {
        return Ok(());
    }
    let message = unsafe {
        let error = (*thread).error;
        let text = if error.is_null() { std::ptr::null() } else { (*error).message };
        let text =
            if text.is_null() { c"plait: an error without a text" } else { CStr::from_ptr(text) };
        let message = text.to_string_lossy().into_owned();
        runtime.clear.expect("in every runtime")(thread);
        message
    };
    Err(Error::new(Kind::of(status), message))
}

/// The engine in force.
pub fn engine() -> Result<&'static plait_engine> {
    let role = unsafe { runtime()?.role.expect("in every runtime")(c"engine".as_ptr(), 0) };
    let mut table: *const plait_engine = std::ptr::null();
    if !role.is_null() {
        // the address of the table changes when a component comes or goes
        let role = unsafe { AtomicPtr::<plait_engine>::from_ptr(role.cast_mut().cast()) };
        table = role.load(Ordering::Acquire);
    }
    let text = "no engine is loaded: libplait_autograd.so is not in the folders";
    unsafe { table.as_ref() }.ok_or_else(|| Error::new(Kind::Runtime, text))
}
