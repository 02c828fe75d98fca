//! Optimizers, by the fused steps of libplait_optim.

use crate::autograd::no_grad;
use crate::call::call;
use crate::error::{Error, Kind, Result};
use crate::ops;
use crate::tensor::Tensor;
use crate::value::Value;

/// Settings of [`Adam`]; the defaults are those of Kingma and Ba, "Adam" (2015).
#[derive(Clone, Copy, Debug)]
pub struct AdamOptions {
    pub lr: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
    /// Weight decay as in Loshchilov and Hutter, "Decoupled weight decay regularization" (2019).
    pub decoupled: bool,
}

impl Default for AdamOptions {
    fn default() -> Self {
        AdamOptions {
            lr: 1e-3,
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
        }
    }
}

/// The optimizer Adam.
pub struct Adam {
    pub options: AdamOptions,
    parameters: Vec<Tensor>,
    moments: Vec<(Tensor, Tensor)>,
    steps: Vec<i64>,
}

impl Adam {
    pub fn new(parameters: &[&Tensor], options: AdamOptions) -> Result<Adam> {
        let moments = parameters
            .iter()
            .map(|p| Ok((ops::zeros_like(p)?, ops::zeros_like(p)?)))
            .collect::<Result<_>>()?;
        Ok(Adam { options, parameters: own(parameters), moments, steps: vec![0; parameters.len()] })
    }

    /// Change the parameters by their gradients. Those without a gradient stay as they are.
    pub fn step(&mut self) -> Result<()> {
        let (which, gradients) = with_gradients(&self.parameters)?;
        for &i in &which {
            self.steps[i] += 1;
        }
        let parameters: Vec<&Tensor> = which.iter().map(|&i| &self.parameters[i]).collect();
        let first: Vec<&Tensor> = which.iter().map(|&i| &self.moments[i].0).collect();
        let second: Vec<&Tensor> = which.iter().map(|&i| &self.moments[i].1).collect();
        let steps: Vec<i64> = which.iter().map(|&i| self.steps[i]).collect();
        let gradients: Vec<&Tensor> = gradients.iter().collect();
        let o = self.options;
        let values = [
            Value::Tensors(&parameters),
            Value::Tensors(&gradients),
            Value::Tensors(&first),
            Value::Tensors(&second),
            Value::Tensors(&[]),
            Value::Ints(&steps),
            Value::Float(o.lr),
            Value::Float(o.betas.0),
            Value::Float(o.betas.1),
            Value::Float(o.eps),
            Value::Float(o.weight_decay),
            Value::Bool(o.decoupled),
        ];
        no_grad(|| call("adam_step", &values).map(drop))
    }

    /// Remove the gradients of the parameters.
    pub fn zero_grad(&self) -> Result<()> {
        self.parameters.iter().try_for_each(|p| p.set_grad(None))
    }
}

/// Gradient descent, with momentum as in Sutskever and others (2013).
pub struct Sgd {
    pub lr: f64,
    pub momentum: f64,
    parameters: Vec<Tensor>,
    buffers: Vec<Tensor>,
    steps: Vec<i64>,
}

impl Sgd {
    pub fn new(parameters: &[&Tensor], lr: f64, momentum: f64) -> Result<Sgd> {
        if !(0.0..=1.0).contains(&momentum) {
            let text = format!("Sgd: `momentum` must be in [0, 1], got {momentum}");
            return Err(Error::new(Kind::Value, text));
        }
        let buffers = parameters.iter().map(|p| ops::zeros_like(p)).collect::<Result<_>>()?;
        let steps = vec![0; parameters.len()];
        Ok(Sgd { lr, momentum, parameters: own(parameters), buffers, steps })
    }

    /// Change the parameters by their gradients. Those without a gradient stay as they are.
    pub fn step(&mut self) -> Result<()> {
        let (which, gradients) = with_gradients(&self.parameters)?;
        for &i in &which {
            self.steps[i] += 1;
        }
        let parameters: Vec<&Tensor> = which.iter().map(|&i| &self.parameters[i]).collect();
        let mut buffers: Vec<&Tensor> = which.iter().map(|&i| &self.buffers[i]).collect();
        if self.momentum == 0.0 {
            buffers.clear();
        }
        let steps: Vec<i64> = which.iter().map(|&i| self.steps[i]).collect();
        let gradients: Vec<&Tensor> = gradients.iter().collect();
        let values = [
            Value::Tensors(&parameters),
            Value::Tensors(&gradients),
            Value::Tensors(&buffers),
            Value::Ints(&steps),
            Value::Float(self.lr),
            Value::Float(self.momentum),
        ];
        no_grad(|| call("sgd_step", &values).map(drop))
    }

    /// Remove the gradients of the parameters.
    pub fn zero_grad(&self) -> Result<()> {
        self.parameters.iter().try_for_each(|p| p.set_grad(None))
    }
}

fn own(parameters: &[&Tensor]) -> Vec<Tensor> {
    parameters.iter().map(|&p| Tensor::clone(p)).collect()
}

/// The indices of the parameters that have a gradient, and the gradients.
fn with_gradients(parameters: &[Tensor]) -> Result<(Vec<usize>, Vec<Tensor>)> {
    let mut which = Vec::new();
    let mut gradients = Vec::new();
    for (i, parameter) in parameters.iter().enumerate() {
        if let Some(gradient) = parameter.grad()? {
            which.push(i);
            gradients.push(gradient);
        }
    }
    Ok((which, gradients))
}
