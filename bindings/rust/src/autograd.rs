//! Gradients by the engine.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::{self, plait_tensor};
use crate::error::Result;
use crate::runtime::{check, engine, thread};
use crate::tensor::Tensor;

/// How a backward pass runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backward<'a> {
    /// The gradient of the tensor; None means 1, for a tensor with one element.
    pub gradient: Option<&'a Tensor>,
    /// Keep the recorded graph for another pass.
    pub retain_graph: bool,
    /// Record the pass, for derivatives of derivatives.
    pub create_graph: bool,
}

impl Backward<'_> {
    fn flags(&self) -> u64 {
        let retain = self.retain_graph || self.create_graph;
        u64::from(if retain { abi::PLAIT_BACKWARD_RETAIN } else { 0 })
            | u64::from(if self.create_graph { abi::PLAIT_BACKWARD_CREATE } else { 0 })
    }
}

impl Tensor {
    /// Record operators on the tensor from now on, or stop that. Stopping is for leaves.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        let (engine, thread) = (engine()?, thread()?);
        let set = engine.set_requires_grad.expect("in every engine");
        check(thread, unsafe { set(engine.ctx, thread, self.raw(), on.into()) })
    }

    pub fn requires_grad(&self) -> bool {
        // a thread of the engine may set the bits
        let layers = unsafe { AtomicU64::from_ptr(&raw mut (*self.raw()).layers) };
        let layers = layers.load(Ordering::Relaxed);
        engine().is_ok_and(|engine| layers >> engine.layer & 1 == 1)
    }

    /// Add the gradients of this tensor to those of the leaves that it depends on.
    pub fn backward(&self) -> Result<()> {
        self.backward_with(Backward::default())
    }

    pub fn backward_with(&self, options: Backward) -> Result<()> {
        let (engine, thread) = (engine()?, thread()?);
        let root = self.raw();
        let gradient = options.gradient.map_or(std::ptr::null_mut(), Tensor::raw);
        let run = engine.backward.expect("in every engine");
        let (inputs, gx) = (std::ptr::null(), std::ptr::null_mut());
        let status =
            unsafe { run(engine.ctx, thread, &root, &gradient, 1, inputs, 0, options.flags(), gx) };
        check(thread, status)
    }

    /// The gradient that backward passes have added up.
    pub fn grad(&self) -> Result<Option<Tensor>> {
        let (engine, thread) = (engine()?, thread()?);
        let mut result = std::ptr::null_mut();
        let get = engine.grad.expect("in every engine");
        check(thread, unsafe { get(engine.ctx, thread, self.raw(), &mut result) })?;
        Ok(unsafe { Tensor::steal(result) })
    }

    /// Replace the gradient; None removes it.
    pub fn set_grad(&self, gradient: Option<&Tensor>) -> Result<()> {
        let (engine, thread) = (engine()?, thread()?);
        let set = engine.set_grad.expect("in every engine");
        let gradient = gradient.map_or(std::ptr::null_mut(), Tensor::raw);
        check(thread, unsafe { set(engine.ctx, thread, self.raw(), gradient) })
    }
}

/// The gradients of a tensor with respect to others, which are not changed. None stands for one
/// that the tensor does not depend on.
pub fn gradients(
    of: &Tensor,
    inputs: &[&Tensor],
    options: Backward,
) -> Result<Vec<Option<Tensor>>> {
    let (engine, thread) = (engine()?, thread()?);
    let root = of.raw();
    let gradient = options.gradient.map_or(std::ptr::null_mut(), Tensor::raw);
    let pointers: Vec<*mut plait_tensor> = inputs.iter().map(|tensor| tensor.raw()).collect();
    let mut results = vec![std::ptr::null_mut(); inputs.len()];
    let flags = options.flags() | u64::from(abi::PLAIT_BACKWARD_ALLOW_UNUSED);
    let run = engine.backward.expect("in every engine");
    let status = unsafe {
        let count = pointers.len() as u32;
        run(
            engine.ctx,
            thread,
            &root,
            &gradient,
            1,
            pointers.as_ptr(),
            count,
            flags,
            results.as_mut_ptr(),
        )
    };
    let results = results.into_iter().map(|pointer| unsafe { Tensor::steal(pointer) }).collect();
    check(thread, status).map(|()| results)
}

/// Whether operators of this thread are recorded.
pub fn is_grad_enabled() -> Result<bool> {
    let (engine, thread) = (engine()?, thread()?);
    Ok(unsafe { engine.enabled.expect("in every engine")(engine.ctx, thread) } != 0)
}

/// Run a function whose operators are not recorded.
pub fn no_grad<T>(function: impl FnOnce() -> Result<T>) -> Result<T> {
    let before =
        Recording { on: engine().is_ok() && is_grad_enabled()?, of_one_thread: PhantomData };
    if before.on {
        set_recording(false);
    }
    function()
}

/// Switches recording on again, also when a panic ends the function.
struct Recording {
    on: bool,
    of_one_thread: PhantomData<*mut ()>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.on {
            set_recording(true);
        }
    }
}

fn set_recording(on: bool) {
    if let (Ok(engine), Ok(thread)) = (engine(), thread()) {
        unsafe { engine.set_enabled.expect("in every engine")(engine.ctx, thread, on.into()) };
    }
}
