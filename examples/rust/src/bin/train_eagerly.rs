//! Train a small network with operators and the optimizer Adam, without Python in the process.
//!
//!     PLAIT_LIBRARIES=... cargo run --release --bin train_eagerly FOLDER

use plait::ops::{self, RandOptions};
use plait::optim::{Adam, AdamOptions};
use plait::{Generator, Tensor};
use plait_examples::{folder, report, Digits, Result, ROWS};

const WIDTH: i64 = 32;

/// Uniform numbers of one seed, small for many rows.
fn parameter(rows: i64, columns: i64, seed: u64) -> plait::Result<Tensor> {
    let generator = Generator::new(seed)?;
    let options = RandOptions { generator: Some(&generator), ..Default::default() };
    let uniform = ops::rand_with(&[rows, columns], options)?;
    let weights = uniform.sub(0.5)?.mul(2.0 / (rows as f64).sqrt())?;
    weights.set_requires_grad(true)?;
    Ok(weights)
}

struct Network {
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
}

impl Network {
    fn new() -> plait::Result<Network> {
        Ok(Network {
            w1: parameter(784, WIDTH, 1)?,
            b1: parameter(1, WIDTH, 2)?,
            w2: parameter(WIDTH, 10, 3)?,
            b2: parameter(1, 10, 4)?,
        })
    }

    fn loss(&self, x: &Tensor, y: &Tensor) -> plait::Result<Tensor> {
        let hidden = x.mm(&self.w1)?.add(&self.b1)?.relu()?;
        ops::cross_entropy(&hidden.mm(&self.w2)?.add(&self.b2)?, y)
    }

    fn parameters(&self) -> [&Tensor; 4] {
        [&self.w1, &self.b1, &self.w2, &self.b2]
    }
}

fn main() -> Result<()> {
    let digits = Digits::read(&folder()?, 100 * ROWS)?;
    plait::load(None)?;
    let network = Network::new()?;
    let mut optimizer = Adam::new(&network.parameters(), AdamOptions::default())?;
    let mut losses = Vec::new();
    for (images, classes) in digits.batches() {
        let rows = classes.len() as i64;
        let (x, y) = (Tensor::new(images, &[rows, 784])?, Tensor::new(classes, &[rows])?);
        optimizer.zero_grad()?;
        let loss = network.loss(&x, &y)?;
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item::<f32>()?);
    }
    report(&losses);
    Ok(())
}
