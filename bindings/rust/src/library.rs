//! Shared libraries, opened by their path.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::path::PathBuf;

use crate::error::{Error, Kind, Result};

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2;

/// A library that stays open until the process ends.
pub struct Library {
    handle: *mut c_void,
    path: PathBuf,
}

impl Library {
    pub fn open(path: PathBuf) -> Result<Library> {
        let name = c_string(&path.to_string_lossy(), "path of a library")?;
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            let text = unsafe { dlerror() };
            let text = if text.is_null() { c"dlopen" } else { unsafe { CStr::from_ptr(text) } };
            return Err(Error::new(Kind::Runtime, text.to_string_lossy()));
        }
        Ok(Library { handle, path })
    }

    /// The address of a function.
    pub fn symbol(&self, name: &str) -> Result<*mut c_void> {
        let symbol = c_string(name, "name of a function")?;
        let found = unsafe { dlsym(self.handle, symbol.as_ptr()) };
        if found.is_null() {
            let text = format!("{} has no function {name}", self.path.display());
            return Err(Error::new(Kind::Runtime, text));
        }
        Ok(found)
    }
}

/// A text as one of C, which has no null character within.
pub fn c_string(text: &str, what: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(Kind::Value, format!("{what} has a null character: {text:?}")))
}

/// Where libraries are looked for: in each folder, and in `<package>/lib` there.
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// Folders separated by colons; None means those of `PLAIT_LIBRARIES` in the environment.
    pub fn new(text: Option<&str>) -> Result<Folders> {
        let setting = std::env::var("PLAIT_LIBRARIES").unwrap_or_default();
        let text = text.unwrap_or(&setting);
        if text.is_empty() {
            let text = "load: folders with the libraries of plait are required, as an argument or \
                        in PLAIT_LIBRARIES";
            return Err(Error::new(Kind::Value, text));
        }
        Ok(Folders(text.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect()))
    }

    pub fn find(&self, package: &str, name: &str) -> Option<PathBuf> {
        let file = format!("lib{name}.so");
        let inner = [PathBuf::from(&file), [package, "lib", &file].iter().collect()];
        let mut paths = self.0.iter().flat_map(|folder| inner.iter().map(|i| folder.join(i)));
        paths.find(|path| path.is_file())
    }

    pub fn require(&self, package: &str, name: &str) -> Result<PathBuf> {
        self.find(package, name).ok_or_else(|| {
            let all: Vec<_> = self.0.iter().map(|folder| folder.display().to_string()).collect();
            let text = format!(
                "lib{name}.so is not there; looked in {}, and in {package}/lib there",
                all.join(", ")
            );
            Error::new(Kind::Runtime, text)
        })
    }
}
