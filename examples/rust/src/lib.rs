//! What both programs share: MNIST's files, and the lines that they print.

use std::path::Path;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The rows of a batch.
pub const ROWS: usize = 100;

/// Images as numbers from 0 to 1, and their classes.
pub struct Digits {
    pub images: Vec<f32>,
    pub classes: Vec<i64>,
}

impl Digits {
    /// Read the first images for training from the folder of MNIST's files.
    pub fn read(folder: &Path, count: usize) -> Result<Digits> {
        // a header of 16 bytes before images of 784, and one of 8 before classes
        let images = std::fs::read(folder.join("train-images-idx3-ubyte"))?;
        let classes = std::fs::read(folder.join("train-labels-idx1-ubyte"))?;
        let images = images.get(16..16 + 784 * count).ok_or("the file of images is too short")?;
        let classes = classes.get(8..8 + count).ok_or("the file of classes is too short")?;
        Ok(Digits {
            images: images.iter().map(|&byte| f32::from(byte) / 255.0).collect(),
            classes: classes.iter().map(|&byte| i64::from(byte)).collect(),
        })
    }

    /// The images and classes of each batch.
    pub fn batches(&self) -> impl Iterator<Item = (&[f32], &[i64])> {
        self.images.chunks(784 * ROWS).zip(self.classes.chunks(ROWS))
    }
}

/// Print the mean losses of each 20 steps.
pub fn report(losses: &[f32]) {
    for (i, part) in losses.chunks(20).enumerate() {
        let mean = part.iter().map(|&loss| f64::from(loss)).sum::<f64>() / part.len() as f64;
        println!("steps {:3} to {:3}  loss {mean:.4}", 20 * i + 1, 20 * i + part.len());
    }
}

/// The folder that the command line names.
pub fn folder() -> Result<std::path::PathBuf> {
    let name =
        std::env::args().nth(1).ok_or("the folder that examples/languages.py wrote is required")?;
    Ok(name.into())
}
