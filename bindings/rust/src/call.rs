//! Calls of operators: arguments are checked against the schema that the runtime has.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{self, plait_arg, plait_call, plait_op, plait_tensor, plait_value, plait_value_u};
use crate::error::{Error, Kind, Result};
use crate::library::c_string;
use crate::runtime::{check, runtime, thread};
use crate::tensor::Tensor;
use crate::value::{Scalar, Value};

/// Whether the result is new or replaces the first argument.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Function,
    InPlace,
}

/// An operator that is looked up at its first call.
pub struct Operator {
    name: &'static str,
    found: AtomicPtr<plait_op>,
}

impl Operator {
    pub const fn new(name: &'static str) -> Operator {
        Operator { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    pub fn call(&self, form: Form, values: &[Value]) -> Result<Results> {
        let mut op = self.found.load(Ordering::Relaxed);
        if op.is_null() {
            op = look_up(self.name)?;
            self.found.store(op, Ordering::Relaxed); // operators are never freed
        }
        call_operator(op, form, values)
    }
}

fn look_up(name: &str) -> Result<*mut plait_op> {
    let text = c_string(name, "name of an operator")?;
    let op = unsafe { runtime()?.op.expect("in every runtime")(text.as_ptr()) };
    if op.is_null() {
        return Err(Error::new(Kind::NotImplemented, format!("{name}: there is no such operator")));
    }
    Ok(op.cast_mut())
}

/// Call an operator by its name, such as "max.dim", with the values of its schema in their order.
/// Values at the end that have defaults may be left out.
///
/// The functions of [`ops`](crate::ops) check the types when they are compiled; this one is for
/// operators that they do not have, such as "adam_step".
pub fn call(name: &str, values: &[Value]) -> Result<Results> {
    call_operator(look_up(name)?, Form::Function, values)
}

/// As [`call`]; the result replaces the first argument.
pub fn call_in_place(name: &str, values: &[Value]) -> Result<Results> {
    call_operator(look_up(name)?, Form::InPlace, values)
}

/// The names of all operators of the runtime.
pub fn operators() -> Result<Vec<String>> {
    let list = runtime()?.ops.expect("in every runtime");
    let count = unsafe { list(std::ptr::null_mut(), 0) };
    let mut found = vec![std::ptr::null::<plait_op>(); count as usize];
    let count = unsafe { list(found.as_mut_ptr(), count) }.min(count) as usize;
    let name = |op: &*const plait_op| unsafe { CStr::from_ptr((**op).name) };
    Ok(found[..count].iter().map(|op| name(op).to_string_lossy().into_owned()).collect())
}

/// What an operator returned, first to last.
#[derive(Debug)]
pub struct Results(VecDeque<Vec<Tensor>>);

impl Results {
    /// The number of results that were not taken yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Take the next result, which is a list of tensors.
    pub fn next_tensors(&mut self) -> Result<Vec<Tensor>> {
        let text = "the operator has no further result";
        self.0.pop_front().ok_or_else(|| Error::new(Kind::Index, text))
    }
    /// Take the next result, which is one tensor.
    pub fn next_tensor(&mut self) -> Result<Tensor> {
        let mut list = self.next_tensors()?;
        match (list.pop(), list.is_empty()) {
            (Some(tensor), true) => Ok(tensor),
            _ => Err(Error::new(Kind::Type, "the result is a list of tensors")),
        }
    }
    /// The first result.
    pub fn tensor(mut self) -> Result<Tensor> {
        self.next_tensor()
    }
    /// The first result, a list.
    pub fn tensors(mut self) -> Result<Vec<Tensor>> {
        self.next_tensors()
    }
}

/// What values point to during a call.
#[derive(Default)]
struct Memory {
    texts: Vec<CString>,
    ints: Vec<Vec<i64>>,
    #[allow(clippy::vec_box)] // a pair must not move when the list grows
    pairs: Vec<Box<[f64; 2]>>,
    tensors: Vec<Vec<*mut plait_tensor>>,
}

fn none() -> plait_value {
    plait_value { tag: abi::PLAIT_NONE as i32, n: 0, u: plait_value_u { i: 0 } }
}

fn call_operator(op: *const plait_op, form: Form, values: &[Value]) -> Result<Results> {
    let thread = thread()?;
    let definition = unsafe { &*op };
    let (n_in, n_out) = (usize::from(definition.n_args), usize::from(definition.n_results));
    let name = unsafe { CStr::from_ptr(definition.name) }.to_string_lossy();
    if values.len() > n_in {
        let text = format!("{name}: at most {n_in} arguments are required, got {}", values.len());
        return Err(Error::new(Kind::Type, text));
    }
    let mut memory = Memory::default();
    let mut inputs = Vec::with_capacity(n_in);
    for i in 0..n_in {
        // the entries of the list may be longer than this program knows
        let argument = unsafe {
            &*definition.args.byte_add(i * definition.arg_size as usize).cast::<plait_arg>()
        };
        let has_default = u32::from(argument.flags) & abi::PLAIT_ARG_DEFAULT != 0;
        inputs.push(match values.get(i) {
            Some(value) => convert(&name, argument, value, &mut memory)?,
            None if has_default => argument.value,
            None => {
                let missing = unsafe { CStr::from_ptr(argument.name) }.to_string_lossy();
                let text = format!("{name}: the argument `{missing}` is required");
                return Err(Error::new(Kind::Type, text));
            }
        });
    }
    let mut outputs = vec![none(); n_out];
    if form == Form::InPlace {
        let allowed = definition.flags & u64::from(abi::PLAIT_OP_INPLACE) != 0;
        match values.first() {
            Some(Value::Tensor(tensor)) if allowed => {
                outputs[0] = Tensor::clone(tensor).into_value()
            }
            Some(_) if allowed => {
                let text = format!("{name}_: the first argument must be a tensor");
                return Err(Error::new(Kind::Type, text));
            }
            _ => {
                let text = format!("{name}: the operator has no form in place");
                return Err(Error::new(Kind::NotImplemented, text));
            }
        }
    }
    let mut call: plait_call = unsafe { std::mem::zeroed() };
    call.size = size_of::<plait_call>() as u32;
    call.n_in = definition.n_args;
    call.n_out = definition.n_results;
    call.op = op;
    call.r#in = inputs.as_mut_ptr();
    call.out = outputs.as_mut_ptr();
    call.thread = thread;
    call.form = if form == Form::InPlace { abi::PLAIT_INPLACE } else { abi::PLAIT_FUNCTION };
    let runtime = runtime()?;
    let status = unsafe { runtime.call.expect("in every runtime")(&mut call) };
    let done = check(thread, status);
    let results = outputs.iter().map(take).collect();
    for output in &mut outputs {
        unsafe { runtime.release_value.expect("in every runtime")(output) };
    }
    done.map(|()| Results(results))
}

/// Handles of the tensors in a result, which stays the owner of its own.
fn take(output: &plait_value) -> Vec<Tensor> {
    unsafe {
        match output.tag as u32 {
            abi::PLAIT_TENSOR => Tensor::share(output.u.t).into_iter().collect(),
            abi::PLAIT_TENSORS => {
                (0..output.n as usize).filter_map(|i| Tensor::share(*output.u.ts.add(i))).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn is_scalar(kind: u32) -> bool {
    matches!(kind, abi::PLAIT_KIND_SCALAR | abi::PLAIT_KIND_OPERAND)
}

/// The words for what a kind of argument takes.
fn words(kind: u32) -> &'static str {
    match kind {
        abi::PLAIT_KIND_TENSOR => "a tensor",
        abi::PLAIT_KIND_OPERAND => "a tensor or a number",
        abi::PLAIT_KIND_TENSORS => "a list of tensors",
        abi::PLAIT_KIND_SCALAR => "a number",
        abi::PLAIT_KIND_INT => "an int",
        abi::PLAIT_KIND_INTS => "a list of ints",
        abi::PLAIT_KIND_FLOAT => "a float",
        abi::PLAIT_KIND_FLOATS => "a list of floats",
        abi::PLAIT_KIND_BOOL => "a bool",
        abi::PLAIT_KIND_STRING => "a string",
        abi::PLAIT_KIND_DTYPE => "a dtype",
        abi::PLAIT_KIND_DEVICE => "a device",
        _ => "a generator",
    }
}

/// One value as the runtime wants it, if the schema allows it.
fn convert(
    name: &str,
    argument: &plait_arg,
    value: &Value,
    memory: &mut Memory,
) -> Result<plait_value> {
    let kind = u32::from(argument.kind);
    let optional = u32::from(argument.flags) & abi::PLAIT_ARG_OPTIONAL != 0;
    let refuse = |what: &str| {
        let own = unsafe { CStr::from_ptr(argument.name) }.to_string_lossy();
        Err(Error::new(Kind::Type, format!("{name}: `{own}` must be {what}, got {value:?}")))
    };
    let make =
        |tag: u32, n: usize, u: plait_value_u| plait_value { tag: tag as i32, n: n as u32, u };
    let int = |i: i64| make(abi::PLAIT_INT, 0, plait_value_u { i });
    let float = |f: f64| make(abi::PLAIT_FLOAT, 0, plait_value_u { f });
    let flag = |b: bool| make(abi::PLAIT_BOOL, 0, plait_value_u { i: b.into() });
    Ok(match (*value, kind) {
        (Value::None, _) if optional => none(),
        (Value::Tensor(t), abi::PLAIT_KIND_TENSOR | abi::PLAIT_KIND_OPERAND) => {
            make(abi::PLAIT_TENSOR, 0, plait_value_u { t: t.raw() })
        }
        (Value::Int(i), abi::PLAIT_KIND_FLOAT) => float(i as f64),
        (Value::Int(i), abi::PLAIT_KIND_INT) => int(i),
        (Value::Float(f), abi::PLAIT_KIND_FLOAT) => float(f),
        (Value::Bool(b), abi::PLAIT_KIND_BOOL) => flag(b),
        (Value::Int(i), _) if is_scalar(kind) => int(i),
        (Value::Float(f), _) if is_scalar(kind) => float(f),
        (Value::Bool(b), _) if is_scalar(kind) => flag(b),
        (Value::Scalar(number), _) if is_scalar(kind) => match number {
            Scalar::Bool(b) => flag(b),
            Scalar::Int(i) => int(i),
            Scalar::Float(f) => float(f),
            Scalar::Complex(pair) => {
                memory.pairs.push(Box::new(pair));
                let fs = memory.pairs[memory.pairs.len() - 1].as_ptr();
                make(abi::PLAIT_COMPLEX, 0, plait_value_u { fs })
            }
        },
        (Value::Ints(list), abi::PLAIT_KIND_INTS) => {
            let length = usize::from(argument.length);
            if length != 0 && list.len() != length && list.len() != 1 {
                return refuse(&format!("a list of {length} ints"));
            }
            let mut list = list.to_vec();
            if list.len() < length {
                list.resize(length, list[0]); // one int stands for all of them
            }
            let value = make(abi::PLAIT_INTS, list.len(), plait_value_u { is: list.as_ptr() });
            memory.ints.push(list);
            value
        }
        (Value::Floats(list), abi::PLAIT_KIND_FLOATS) => {
            make(abi::PLAIT_FLOATS, list.len(), plait_value_u { fs: list.as_ptr() })
        }
        (Value::Tensors(list), abi::PLAIT_KIND_TENSORS) => {
            pointers(list.iter().map(|t| t.raw()).collect(), memory)
        }
        (Value::OptionalTensors(list), abi::PLAIT_KIND_TENSORS) => {
            if !optional && list.iter().any(Option::is_none) {
                return refuse("a list of tensors without None");
            }
            let null = std::ptr::null_mut();
            pointers(list.iter().map(|t| t.map_or(null, Tensor::raw)).collect(), memory)
        }
        (Value::Str(text), abi::PLAIT_KIND_STRING) => {
            let text = c_string(text, name)?;
            let u = plait_value_u { s: text.as_ptr() };
            let value = make(abi::PLAIT_STRING, text.as_bytes().len(), u);
            memory.texts.push(text);
            value
        }
        (Value::DType(dtype), abi::PLAIT_KIND_DTYPE) => {
            make(abi::PLAIT_DTYPE, 0, plait_value_u { dtype: dtype.raw() })
        }
        (Value::Device(device), abi::PLAIT_KIND_DEVICE) => {
            make(abi::PLAIT_DEVICE, 0, plait_value_u { device: device.raw() })
        }
        (Value::Generator(generator), abi::PLAIT_KIND_GENERATOR) => {
            make(abi::PLAIT_OBJECT, 0, plait_value_u { o: generator.raw().cast() })
        }
        _ => return refuse(words(kind)),
    })
}

fn pointers(list: Vec<*mut plait_tensor>, memory: &mut Memory) -> plait_value {
    let u = plait_value_u { ts: list.as_ptr() };
    let value = plait_value { tag: abi::PLAIT_TENSORS as i32, n: list.len() as u32, u };
    memory.tensors.push(list);
    value
}
