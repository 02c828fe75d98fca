//! Tensors, operators and gradients. They need the libraries: `PLAIT_LIBRARIES` names the folders.

use plait::ops::{self, Conv2dOptions, SumOptions};
use plait::{call, gradients, no_grad, Backward, DType, Generator, Kind, Result, Tensor, Value};

fn load() {
    plait::load(None).unwrap();
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> (Kind, String) {
    let error = result.unwrap_err();
    (error.kind(), error.message().to_string())
}

#[test]
fn elements_come_and_go() {
    load();
    let x = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    assert_eq!(x.shape(), [2, 3]);
    assert_eq!(x.dtype().unwrap(), DType::Float32);
    let transposed = x.t().unwrap(); // a view, whose elements are not in C order
    assert_eq!(transposed.to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    transposed.copy_from(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    let flags = Tensor::new(&[true, false], &[2]).unwrap();
    assert_eq!(flags.logical_not().unwrap().to_vec::<bool>().unwrap(), [false, true]);
    let pairs = Tensor::new(&[[1.0f64, 2.0]], &[1]).unwrap();
    assert_eq!(pairs.mul(&pairs).unwrap().to_vec::<[f64; 2]>().unwrap(), [[-3.0, 4.0]]);
    let none = Tensor::new::<i64>(&[], &[0, 2]).unwrap();
    assert_eq!(none.to_vec::<i64>().unwrap(), []);
    assert_eq!(Tensor::scalar(7i32).unwrap().item::<i32>().unwrap(), 7);
}

#[test]
fn operators_take_numbers_lists_and_options() {
    load();
    let x = Tensor::new(&[1i64, 2, 3, 4], &[2, 2]).unwrap();
    assert_eq!(x.mul(2).unwrap().to_vec::<i64>().unwrap(), [2, 4, 6, 8]);
    assert_eq!(x.mul(0.5).unwrap().dtype().unwrap(), DType::Float32); // a number promotes weakly
    let rows = x.sum_with(SumOptions { dim: Some(&[1]), ..Default::default() }).unwrap();
    assert_eq!(rows.to_vec::<i64>().unwrap(), [3, 7]);
    let (values, indices) = x.max_dim(0).unwrap();
    assert_eq!(values.to_vec::<i64>().unwrap(), [3, 4]);
    assert_eq!(indices.to_vec::<i64>().unwrap(), [1, 1]);
    let parts = x.split(1).unwrap();
    assert_eq!(ops::cat(&[&parts[1], &parts[0]]).unwrap().to_vec::<i64>().unwrap(), [3, 4, 1, 2]);
    let ones = ops::ones(&[1, 1, 4, 4]).unwrap();
    let options = Conv2dOptions { stride: &[2], ..Default::default() }; // one int for both
    let image = ops::conv2d_with(&ones, &ops::ones(&[1, 1, 2, 2]).unwrap(), options).unwrap();
    assert_eq!(image.shape(), [1, 1, 2, 2]);
    assert_eq!(x.add_(&x).unwrap().to_vec::<i64>().unwrap(), [2, 4, 6, 8]);
    assert_eq!(x.to_vec::<i64>().unwrap(), [2, 4, 6, 8]);
    let index = Tensor::new(&[1i64], &[1]).unwrap();
    let column = ops::index(&x, &[None, Some(&index)]).unwrap();
    assert_eq!(column.to_vec::<i64>().unwrap(), [4, 8]);
}

#[test]
fn seeds_name_numbers() {
    load();
    let draw = |seed| {
        let generator = Generator::new(seed).unwrap();
        let options = ops::RandOptions { generator: Some(&generator), ..Default::default() };
        ops::rand_with(&[3], options).unwrap().to_vec::<f32>().unwrap()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn gradients_flow() {
    load();
    let x = Tensor::new(&[1.0f64, 2.0], &[2]).unwrap();
    x.set_requires_grad(true).unwrap();
    let y = x.mul(&x).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0]);
    x.set_grad(None).unwrap();
    assert!(x.grad().unwrap().is_none());
    let cube = x.mul(&x).unwrap().mul(&x).unwrap().sum().unwrap();
    let create = Backward { create_graph: true, ..Default::default() };
    let first = gradients(&cube, &[&x], create).unwrap().remove(0).unwrap();
    let second = gradients(&first.sum().unwrap(), &[&x], Backward::default()).unwrap();
    assert_eq!(second[0].as_ref().unwrap().to_vec::<f64>().unwrap(), [6.0, 12.0]);
    no_grad(|| x.sub_(1.0)).unwrap();
    assert!(!no_grad(|| x.exp()).unwrap().requires_grad());
    assert!(x.exp().unwrap().requires_grad()); // recording is on again
}

#[test]
fn bad_arguments_are_errors_that_name_the_operator() {
    load();
    let x = ops::ones(&[2, 3]).unwrap();
    let (kind, text) = error(x.mm(&x));
    assert_eq!(kind, Kind::Shape);
    assert!(text.starts_with("mm: "), "{text}");
    let (kind, text) = error(x.sum_with(SumOptions { dim: Some(&[5]), ..Default::default() }));
    assert_eq!(kind, Kind::Index);
    assert!(text.contains("dim"), "{text}");
    let (kind, _) = error(ops::linalg_inv(&Tensor::new(&[1i64], &[1, 1]).unwrap()));
    assert_eq!(kind, Kind::DType);
    let (kind, text) = error(Tensor::new(&[1.0f32; 5], &[2, 3]));
    assert_eq!(
        (kind, text.as_str()),
        (Kind::Shape, "Tensor::new: 5 elements do not fit shape [2, 3]")
    );
    assert_eq!(error(Tensor::new(&[1.0f32; 4], &[-2, -2])).0, Kind::Shape);
    assert_eq!(error(Tensor::new::<f32>(&[], &[0; 65])).0, Kind::Shape);
    assert_eq!(error(x.to_vec::<f64>()).0, Kind::DType);
    assert_eq!(error(x.copy_from(&[1.0f32])).0, Kind::Shape);
    assert_eq!(error(x.item::<f32>()).0, Kind::Shape);
    let options = ops::OnesOptions { device: Some(plait::Device::Meta), ..Default::default() };
    let nowhere = ops::ones_with(&[2], options).unwrap();
    assert_eq!(error(nowhere.to_vec::<f32>()).0, Kind::NotImplemented);
    assert_eq!(error(x.backward()).0, Kind::Runtime);
    let options = Conv2dOptions { stride: &[1, 1, 1], ..Default::default() };
    let (kind, text) = error(ops::conv2d_with(&x, &x, options));
    assert_eq!(kind, Kind::Type);
    assert!(text.starts_with("conv2d: `stride` must be a list of 2 ints"), "{text}");
}

#[test]
fn a_call_by_name_checks_its_values() {
    load();
    let x = ops::ones(&[2]).unwrap();
    let sum = call("add", &[Value::Tensor(&x), Value::Int(1)]).unwrap().tensor().unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0, 2.0]);
    assert_eq!(error(call("no_such", &[])).0, Kind::NotImplemented);
    assert_eq!(error(call("add\0", &[])).0, Kind::Value);
    let (kind, text) = error(call("add", &[Value::Tensor(&x)]));
    assert_eq!((kind, text.as_str()), (Kind::Type, "add: the argument `other` is required"));
    let (kind, text) = error(call("relu", &[Value::Int(1)]));
    assert_eq!((kind, text.as_str()), (Kind::Type, "relu: `self` must be a tensor, got Int(1)"));
    let missing = [None, Some(&x)];
    assert_eq!(error(call("cat", &[Value::OptionalTensors(&missing)])).0, Kind::Type);
    assert_eq!(error(call("relu", &[Value::Tensor(&x), Value::None])).0, Kind::Type);
    let in_place = plait::call_in_place("cat", &[Value::Tensors(&[&x])]);
    assert_eq!(error(in_place).0, Kind::NotImplemented);
}

#[test]
fn every_operator_refuses_meaningless_values_without_a_crash() {
    load();
    let x = ops::ones(&[2, 3]).unwrap();
    let empty = ops::ones(&[0]).unwrap();
    let words = Tensor::new(&[true], &[]).unwrap();
    let mut refused = 0;
    for name in plait::operators().unwrap() {
        for value in [
            Value::None,
            Value::Int(i64::MIN),
            Value::Float(f64::NAN),
            Value::Bool(true),
            Value::Ints(&[]),
            Value::Ints(&[i64::MAX; 3]),
            Value::Tensors(&[]),
            Value::Tensors(&[&x, &empty, &words]),
            Value::OptionalTensors(&[None, None]),
            Value::Str("?"),
            Value::DType(DType::Bool),
            Value::Tensor(&empty),
        ] {
            for count in 0..5 {
                refused += i32::from(call(&name, &vec![value; count]).is_err());
            }
        }
    }
    assert!(refused > 1000);
}

#[test]
fn threads_compute_at_once() {
    load();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            std::thread::spawn(move || {
                let generator = Generator::new(seed).unwrap();
                let options =
                    ops::RandOptions { generator: Some(&generator), ..Default::default() };
                let x = ops::rand_with(&[8, 8], options).unwrap();
                x.set_requires_grad(true).unwrap();
                for _ in 0..20 {
                    x.mm(&x).unwrap().sum().unwrap().backward().unwrap();
                }
                no_grad(|| x.sum()).unwrap().item::<f32>().unwrap()
            })
        })
        .collect();
    let sums: Vec<f32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(sums.iter().all(|sum| *sum > 0.0));
}
