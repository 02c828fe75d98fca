//! Tensors and generators: counted handles of the runtime.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{self, plait_generator, plait_object, plait_tensor, plait_value, plait_value_u};
use crate::dtype::{self, DType, Device, Element};
use crate::error::{Error, Kind, Result};
use crate::ops;
use crate::runtime::{check, runtime, thread};

/// Count a reference, as `plait_retain_object` does.
unsafe fn retain(object: *mut plait_object) {
    unsafe { AtomicU64::from_ptr(&raw mut (*object).refs) }.fetch_add(1, Ordering::Relaxed);
}

/// Give a reference up, as `plait_release_object` does.
pub(crate) unsafe fn release(object: *mut plait_object) {
    if object.is_null() {
        return;
    }
    unsafe {
        let refs = AtomicU64::from_ptr(&raw mut (*object).refs);
        if refs.load(Ordering::Acquire) == 1 || refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            (*(*object).r#type).drop.expect("in every type")(object);
        }
    }
}

/// A tensor. `clone` is another handle of the same one; `ops::clone` copies the elements.
///
/// Operators in place write to a tensor that other handles share, so a tensor is of one thread.
pub struct Tensor {
    pointer: NonNull<plait_tensor>,
    of_one_thread: PhantomData<*mut ()>,
}

impl Tensor {
    /// A tensor with copies of the elements, which are in C order.
    pub fn new<T: Element>(elements: &[T], shape: &[i64]) -> Result<Tensor> {
        let count =
            shape.iter().try_fold(1i64, |n, &size| (size >= 0).then(|| n.checked_mul(size))?);
        if count.and_then(|n| usize::try_from(n).ok()) != Some(elements.len()) {
            let text =
                format!("Tensor::new: {} elements do not fit shape {shape:?}", elements.len());
            return Err(Error::new(Kind::Shape, text));
        }
        let tensor = Tensor::empty(shape, T::DTYPE)?;
        if !elements.is_empty() {
            // both have this many elements of this type, and the tensor is new
            let target = tensor.data().cast::<T>();
            unsafe { std::ptr::copy_nonoverlapping(elements.as_ptr(), target, elements.len()) };
        }
        Ok(tensor)
    }

    /// A 0-d tensor.
    pub fn scalar<T: Element>(value: T) -> Result<Tensor> {
        Tensor::new(&[value], &[])
    }

    fn empty(shape: &[i64], dtype: DType) -> Result<Tensor> {
        if shape.len() > abi::PLAIT_MAX_DIMS as usize {
            let text = format!("Tensor::new: at most {} dimensions", abi::PLAIT_MAX_DIMS);
            return Err(Error::new(Kind::Shape, text));
        }
        let (runtime, thread) = (runtime()?, thread()?);
        let mut result = std::ptr::null_mut();
        let make = runtime.tensor_new.expect("in every runtime");
        let (ndim, device) = (shape.len() as i32, Device::Cpu.raw());
        let strides = std::ptr::null();
        let status = unsafe {
            make(thread, dtype.raw(), ndim, shape.as_ptr(), strides, device, &mut result)
        };
        check(thread, status)?;
        Ok(unsafe { Tensor::steal(result) }.expect("there was no error"))
    }

    /// Take over a reference.
    pub(crate) unsafe fn steal(pointer: *mut plait_tensor) -> Option<Tensor> {
        Some(Tensor { pointer: NonNull::new(pointer)?, of_one_thread: PhantomData })
    }

    /// Add a reference.
    pub(crate) unsafe fn share(pointer: *mut plait_tensor) -> Option<Tensor> {
        let tensor = unsafe { Tensor::steal(pointer) }?;
        unsafe { retain(pointer.cast()) };
        Some(tensor)
    }

    pub(crate) fn raw(&self) -> *mut plait_tensor {
        self.pointer.as_ptr()
    }

    /// A value that owns the reference.
    pub(crate) fn into_value(self) -> plait_value {
        let u = plait_value_u { t: self.raw() };
        std::mem::forget(self);
        plait_value { tag: abi::PLAIT_TENSOR as i32, n: 0, u }
    }

    fn data(&self) -> *mut u8 {
        unsafe { (*self.raw()).dl.data.cast::<u8>().add((*self.raw()).dl.byte_offset as usize) }
    }

    pub fn shape(&self) -> Vec<i64> {
        unsafe {
            let dl = &(*self.raw()).dl;
            (0..dl.ndim as usize).map(|i| *dl.shape.add(i)).collect()
        }
    }

    fn strides(&self) -> Vec<i64> {
        unsafe {
            let dl = &(*self.raw()).dl;
            (0..dl.ndim as usize).map(|i| *dl.strides.add(i)).collect()
        }
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape().iter().product::<i64>() as usize
    }

    pub fn dtype(&self) -> Result<DType> {
        DType::of(unsafe { (*self.raw()).dl.dtype })
    }

    pub fn device(&self) -> Device {
        Device::of(unsafe { (*self.raw()).dl.device })
    }

    /// The tensor on the CPU, in C order.
    fn dense(&self) -> Result<Tensor> {
        if self.device() == Device::Meta {
            let text = "to_vec: a tensor on the device meta has no elements";
            return Err(Error::new(Kind::NotImplemented, text));
        }
        let (runtime, thread) = (runtime()?, thread()?);
        let mut result = std::ptr::null_mut();
        let copy = runtime.host_copy.expect("in every runtime");
        check(thread, unsafe { copy(thread, self.raw(), &mut result) })?;
        let here = unsafe { Tensor::steal(result) }.expect("there was no error");
        ops::contiguous(&crate::no_grad(|| here.detach())?)
    }

    fn check_dtype<T: Element>(&self, what: &str) -> Result<()> {
        let dtype = self.dtype()?;
        if dtype == T::DTYPE {
            return Ok(());
        }
        let text = format!("{what}: the dtype of the tensor is {dtype}, got {}", T::DTYPE);
        Err(Error::new(Kind::DType, text))
    }

    /// Copies of the elements, in C order. Their dtype must be that of `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype::<T>("to_vec")?;
        let dense = self.dense()?;
        let count = dense.numel();
        let data = dense.data().cast_const();
        Ok((0..count).map(|i| unsafe { dtype::read::<T>(data.add(i * size_of::<T>())) }).collect())
    }

    /// The only element.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.numel() != 1 {
            let text = format!("item: one element is required, got shape {:?}", self.shape());
            return Err(Error::new(Kind::Shape, text));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    /// Write elements, in C order, over those of the tensor; the gradient is not recorded.
    pub fn copy_from<T: Element>(&self, elements: &[T]) -> Result<()> {
        self.check_dtype::<T>("copy_from")?;
        let source = Tensor::new(elements, &self.shape())?;
        crate::no_grad(|| self.copy_(&source).map(drop))
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        unsafe { Tensor::share(self.raw()) }.expect("it is not null")
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        unsafe { release(self.raw().cast()) }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = self.dtype().map_or("another dtype", DType::name);
        write!(f, "Tensor({dtype}, {:?}", self.shape())?;
        if self.device() != Device::Cpu {
            write!(f, ", {:?}", self.device())?;
        }
        if !self.strides().is_empty() && self.numel() <= 8 {
            if let Ok(values) = self.to_vec::<f32>() {
                write!(f, ", {values:?}")?;
            }
        }
        f.write_str(")")
    }
}

/// A source of random numbers; the same seed gives the same numbers, in every language.
pub struct Generator(NonNull<plait_generator>, PhantomData<*mut ()>);

impl Generator {
    pub fn new(seed: u64) -> Result<Generator> {
        let pointer = unsafe { runtime()?.generator_new.expect("in every runtime")(seed) };
        let pointer = NonNull::new(pointer)
            .ok_or_else(|| Error::new(Kind::Memory, "Generator::new: no memory"))?;
        Ok(Generator(pointer, PhantomData))
    }

    pub(crate) fn raw(&self) -> *mut plait_generator {
        self.0.as_ptr()
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        unsafe { release(self.raw().cast()) }
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generator")
    }
}
