//! Saved graphs: a file that `plait_graph.export` wrote runs and trains, by libplait_run.
//!
//! It does not need [`load`](crate::load): libplait_run loads what it needs itself.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::OnceLock;

use crate::dtype::{self, Element};
use crate::error::{Error, Kind, Result};
use crate::library::{c_string, Folders, Library};

#[allow(non_camel_case_types, dead_code, clippy::all)]
mod run {
    use std::ffi::{c_char, c_int, c_void};
    use std::mem::{offset_of, size_of};

    use crate::error::Result;
    use crate::library::Library;

    include!(concat!(env!("OUT_DIR"), "/run.rs"));
}

/// What names and indices of a graph count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Input,
    Output,
    Weight,
    Number,
}

impl Part {
    fn raw(self) -> i32 {
        (match self {
            Part::Input => run::PLAIT_RUN_INPUT,
            Part::Output => run::PLAIT_RUN_OUTPUT,
            Part::Weight => run::PLAIT_RUN_WEIGHT,
            Part::Number => run::PLAIT_RUN_NUMBER,
        }) as i32
    }
    fn name(self) -> &'static str {
        match self {
            Part::Input => "input",
            Part::Output => "output",
            Part::Weight => "weight",
            Part::Number => "number",
        }
    }
}

/// How a process runs graphs; the defaults leave everything as it is.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Folders with the libraries, separated by colons; None: those of `PLAIT_LIBRARIES`. They
    /// count in the first call of a process.
    pub libraries: Option<String>,
    /// Bytes that the tensors of all graphs of the process may take; 0: as before.
    pub memory_limit: u64,
    /// The number of threads of the process; 0: as before, at first one for each core.
    pub threads: u32,
    /// Read weights from the file when they are first used.
    pub map_weights: bool,
}

/// An input, output or weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub name: String,
    /// Such as "float32"; empty if it is known only behind a run.
    pub dtype: String,
    pub shape: Vec<i64>,
}

/// A saved graph. Methods that run it need `&mut`, so it is used by one thread at a time.
pub struct Graph {
    handle: *mut run::plait_run,
    functions: &'static run::Functions,
}

// A handle may be used by one thread after the other; `&self` methods do not exist, as a look
// stores the text of its error, too.
unsafe impl Send for Graph {}

static FUNCTIONS: OnceLock<run::Functions> = OnceLock::new();

impl Graph {
    /// Open a file. Nothing of it is executed.
    pub fn open(path: impl AsRef<Path>, settings: &Settings) -> Result<Graph> {
        let folders = settings.libraries.clone().or_else(|| std::env::var("PLAIT_LIBRARIES").ok());
        let functions = match FUNCTIONS.get() {
            Some(functions) => functions,
            None => {
                let library =
                    Folders::new(folders.as_deref())?.require("plait_graph", "plait_run")?;
                let functions = run::Functions::find(&Library::open(library)?)?;
                FUNCTIONS.get_or_init(|| functions)
            }
        };
        let text = path.as_ref().to_string_lossy();
        let path = c_string(&text, "Graph::open: the path")?;
        let folders = c_string(&folders.unwrap_or_default(), "Graph::open: the folders")?;
        let settings = run::plait_run_settings {
            size: size_of::<run::plait_run_settings>() as u64,
            libraries: if folders.is_empty() { std::ptr::null() } else { folders.as_ptr() },
            memory_limit: settings.memory_limit,
            threads: settings.threads,
            flags: if settings.map_weights { run::PLAIT_RUN_MAP_WEIGHTS } else { 0 },
        };
        let mut handle = std::ptr::null_mut();
        let status = unsafe { (functions.plait_run_open)(path.as_ptr(), &settings, &mut handle) };
        let graph = Graph { handle, functions }; // also after an error, for its text
        graph.check(status)?;
        Ok(graph)
    }

    fn check(&self, status: i32) -> Result<()> {
        if status >= 0 {
            return Ok(());
        }
        let text = if self.handle.is_null() {
            "plait_run_open: no memory".into()
        } else {
            unsafe { CStr::from_ptr((self.functions.plait_run_error)(self.handle)) }
                .to_string_lossy()
                .into_owned()
        };
        Err(Error::new(Kind::of(status), text))
    }

    /// The number of inputs, outputs, weights or numbers.
    pub fn count(&mut self, part: Part) -> u32 {
        unsafe { (self.functions.plait_run_count)(self.handle, part.raw()) }
    }

    fn index(&mut self, part: Part, name: &str) -> Result<u32> {
        let text = c_string(name, "name")?;
        let find = self.functions.plait_run_find;
        let index = unsafe { find(self.handle, part.raw(), text.as_ptr()) };
        u32::try_from(index).map_err(|_| {
            let names = self.names(part).unwrap_or_default().join(", ");
            let kind = part.name();
            Error::new(Kind::Index, format!("there is no {kind} {name}; there are: {names}"))
        })
    }

    fn get(&mut self, part: Part, index: u32) -> Result<run::plait_run_tensor> {
        // all zero is what the function asks for, besides the size
        let mut tensor: run::plait_run_tensor = unsafe { std::mem::zeroed() };
        tensor.size = size_of::<run::plait_run_tensor>() as u64;
        let get = self.functions.plait_run_get;
        self.check(unsafe { get(self.handle, part.raw(), index, &mut tensor) })?;
        Ok(tensor)
    }

    /// The names, in the order of their indices.
    pub fn names(&mut self, part: Part) -> Result<Vec<String>> {
        (0..self.count(part)).map(|i| Ok(text(self.get(part, i)?.name))).collect()
    }

    /// Describe the inputs, outputs or weights.
    pub fn describe(&mut self, part: Part) -> Result<Vec<Description>> {
        (0..self.count(part)).map(|i| Ok(described(&self.get(part, i)?))).collect()
    }

    fn typed<T: Element>(
        &mut self,
        part: Part,
        name: &str,
    ) -> Result<(u32, run::plait_run_tensor)> {
        let index = self.index(part, name)?;
        let tensor = self.get(part, index)?;
        let dtype = text(tensor.dtype);
        if !dtype.is_empty() && dtype != T::DTYPE.name() {
            let text = format!("{} {name} has dtype {dtype}, got {}", part.name(), T::DTYPE);
            return Err(Error::new(Kind::DType, text));
        }
        Ok((index, tensor))
    }

    fn read<T: Element>(&mut self, part: Part, name: &str) -> Result<Vec<T>> {
        let (_, tensor) = self.typed::<T>(part, name)?;
        let count = tensor.nbytes as usize / size_of::<T>();
        if count > 0 && tensor.data.is_null() {
            let text = format!("{} {name} has no value yet: run the graph first", part.name());
            return Err(Error::new(Kind::Value, text));
        }
        let mut result = Vec::with_capacity(count);
        let (shape, strides) = (list(tensor.shape, tensor.ndim), list(tensor.strides, tensor.ndim));
        let mut at = vec![0i64; shape.len()];
        let data = tensor.data.cast::<T>();
        for _ in 0..count {
            let offset: i64 = at.iter().zip(&strides).map(|(i, stride)| i * stride).sum();
            result.push(unsafe { dtype::read::<T>(data.offset(offset as isize).cast()) });
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Ok(result)
    }

    fn write<T: Element>(&mut self, part: Part, name: &str, elements: &[T]) -> Result<()> {
        let (index, _) = self.typed::<T>(part, name)?;
        let bytes = size_of_val(elements) as u64;
        let set = self.functions.plait_run_set;
        let data = elements.as_ptr().cast();
        self.check(unsafe { set(self.handle, part.raw(), index, data, bytes, 0) })
    }

    /// Set an input to copies of the elements, which are in C order.
    pub fn set_input<T: Element>(&mut self, name: &str, elements: &[T]) -> Result<()> {
        self.write(Part::Input, name, elements)
    }

    /// Set a weight to copies of the elements, which are in C order.
    pub fn set_weight<T: Element>(&mut self, name: &str, elements: &[T]) -> Result<()> {
        self.write(Part::Weight, name, elements)
    }

    /// Run the graph once. All inputs must be set.
    pub fn execute(&mut self) -> Result<()> {
        self.check(unsafe { (self.functions.plait_run_execute)(self.handle) })
    }

    /// Copies of the elements of an output of the last run, in C order.
    pub fn output<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        self.read(Part::Output, name)
    }

    /// Copies of the elements of a weight, in C order.
    pub fn weight<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        self.read(Part::Weight, name)
    }

    /// A number, such as a learning rate or a free size.
    pub fn number(&mut self, name: &str) -> Result<f64> {
        Ok(self.read(Part::Number, name)?[0])
    }

    /// Set a number, from the next run on.
    pub fn set_number(&mut self, name: &str, value: f64) -> Result<()> {
        self.write(Part::Number, name, &[value])
    }

    /// Write graph, weights and numbers as they are now to a file.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path: CString = c_string(&path.as_ref().to_string_lossy(), "Graph::save: the path")?;
        self.check(unsafe { (self.functions.plait_run_save)(self.handle, path.as_ptr()) })
    }

    /// An upper bound of the bytes of all tensors during a run.
    pub fn memory(&mut self) -> u64 {
        unsafe { (self.functions.plait_run_memory)(self.handle) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        unsafe { (self.functions.plait_run_close)(self.handle) }
    }
}

fn text(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn list(pointer: *const i64, length: i32) -> Vec<i64> {
    (0..length.max(0) as usize).map(|i| unsafe { *pointer.add(i) }).collect()
}

fn described(tensor: &run::plait_run_tensor) -> Description {
    let shape = list(tensor.shape, tensor.ndim);
    Description { name: text(tensor.name), dtype: text(tensor.dtype), shape }
}
