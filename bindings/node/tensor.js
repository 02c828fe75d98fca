'use strict';
// Tensors, and the operators as functions and methods.
const native = require('./native');
const table = require('./generated/operators');

const HANDLE = Symbol('handle');

// Views of the elements by dtype. A bool is a byte; halves are their bits; a complex number is two
// numbers, one after the other.
const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  complex64: Float32Array,
  complex128: Float64Array,
};
const DTYPES = new Map(
  ['uint8', 'uint16', 'uint32', 'uint64', 'int8', 'int16', 'int32', 'int64', 'float32', 'float64'].map(
    (dtype) => [ARRAYS[dtype], dtype],
  ),
);

function failure(Type, code, text) {
  return Object.assign(new Type(text), { code });
}

// The tensors that the innermost `tidy` frees.
let scope = null;

class Generator {
  // A source of random numbers; the same seed gives the same numbers, in every language.
  constructor(seed) {
    this[HANDLE] = native.generator_new(seed);
  }
}

class Tensor {
  constructor(handle) {
    this[HANDLE] = handle;
    if (scope) scope.push(this);
  }
  get shape() {
    return native.tensor_shape(this[HANDLE]);
  }
  get dtype() {
    return native.tensor_dtype(this[HANDLE]);
  }
  get device() {
    return native.tensor_device(this[HANDLE]);
  }
  get size() {
    return this.shape.reduce((product, size) => product * size, 1);
  }
  // Copies of the elements in C order, as a typed array.
  data() {
    const Type = ARRAYS[this.dtype];
    if (!Type) {
      throw failure(TypeError, 'DTYPE_ERROR', `data: there are no typed arrays of ${this.dtype}`);
    }
    return new Type(native.tensor_data(this[HANDLE]));
  }
  // The elements as nested arrays of numbers; those of int64 must be exact as numbers.
  toArray() {
    const { shape, dtype } = this;
    if (!NUMBERS[dtype]) {
      throw failure(TypeError, 'DTYPE_ERROR', `toArray: ${dtype} has no numbers of JavaScript; cast it`);
    }
    const flat = Array.from(this.data(), NUMBERS[dtype]);
    const nest = (axis, begin, count) => {
      if (axis === shape.length) return flat[begin];
      const step = count / (shape[axis] || 1);
      return Array.from({ length: shape[axis] }, (_, i) => nest(axis + 1, begin + i * step, step));
    };
    return nest(0, 0, flat.length);
  }
  // The only element.
  item() {
    if (this.size !== 1) {
      throw failure(RangeError, 'SHAPE_ERROR', `item: one element is required, got shape [${this.shape}]`);
    }
    return [this.toArray()].flat(Infinity)[0];
  }
  get requiresGrad() {
    return native.requires_grad(this[HANDLE]);
  }
  set requiresGrad(on) {
    native.set_requires_grad(this[HANDLE], on);
  }
  get grad() {
    const handle = native.grad(this[HANDLE]);
    return handle && new Tensor(handle);
  }
  set grad(gradient) {
    native.set_grad(this[HANDLE], unwrap(gradient));
  }
  // Add the gradients of this tensor to those of the leaves that it depends on.
  backward({ gradient = null, retainGraph = false, createGraph = false } = {}) {
    native.backward(this[HANDLE], unwrap(gradient), null, retainGraph, createGraph);
  }
  // Free the tensor now, rather than when it is collected. Its later use is an error.
  free() {
    native.free(this[HANDLE]);
  }
}

function exact(big) {
  const number = Number(big);
  if (!Number.isSafeInteger(number)) {
    throw failure(RangeError, 'VALUE_ERROR', `${big} is not exact as a number: use data()`);
  }
  return number;
}

const same = (number) => number;
const NUMBERS = { bool: Boolean, int64: exact, uint64: exact };
for (const dtype of ['uint8', 'uint16', 'uint32', 'int8', 'int16', 'int32', 'float32', 'float64']) {
  NUMBERS[dtype] = same;
}

function unwrap(value) {
  if (value instanceof Tensor || value instanceof Generator) return value[HANDLE];
  return Array.isArray(value) ? value.map(unwrap) : value;
}

function wrap(value) {
  if (Array.isArray(value)) return value.map(wrap);
  return value === null ? null : new Tensor(value);
}

// Call an operator by its name, such as "max.dim", with values in the order of its schema. What is
// undefined takes its default.
function call(name, ...values) {
  return results(native.call(name, false, values.map(unwrap)));
}

function results(list) {
  return list.length === 1 ? wrap(list[0]) : list.length ? wrap(list) : undefined;
}

function isOptions(value) {
  return Object.prototype.toString.call(value) === '[object Object]' &&
    !(value instanceof Tensor) && !(value instanceof Generator);
}

// A function of an operator: values by position, and the others by name in an object at the end.
function makeFunction([name, identifier, parameters, positional], inPlace) {
  return (...values) => {
    const options = isOptions(values.at(-1)) ? values.pop() : {};
    const called = identifier + (inPlace ? '_' : '');
    if (values.length > positional) {
      const text = `${called}: at most ${positional} arguments by position, got ${values.length}`;
      throw failure(TypeError, 'TYPE_ERROR', text);
    }
    while (values.length < parameters.length) values.push(undefined);
    for (const [option, value] of Object.entries(options)) {
      const place = parameters.indexOf(option);
      if (place < 0 || values[place] !== undefined) {
        const why = place < 0 ? 'there is no such argument' : 'it was passed twice';
        throw failure(TypeError, 'TYPE_ERROR', `${called}: \`${option}\`: ${why}`);
      }
      values[place] = value;
    }
    return results(native.call(name, inPlace, values.map(unwrap)));
  };
}

const ops = {};
for (const row of table) {
  const [, identifier, , , isMethod, hasInPlace] = row;
  for (const inPlace of hasInPlace ? [false, true] : [false]) {
    const own = identifier + (inPlace ? '_' : '');
    const operator = makeFunction(row, inPlace);
    ops[own] = operator;
    if (isMethod && !(own in Tensor.prototype)) {
      Object.defineProperty(Tensor.prototype, own, {
        value(...values) {
          return operator(this, ...values);
        },
      });
    }
  }
}

// A tensor of a typed array, a number, a boolean, or nested arrays of them.
function tensor(values, { shape, dtype } = {}) {
  const typed = ArrayBuffer.isView(values);
  if (!typed && shape === undefined) shape = shapeOf(values);
  const flat = typed ? values : [values].flat(Infinity);
  if (dtype === undefined) {
    if (typed) dtype = DTYPES.get(values.constructor);
    else if (flat.length && flat.every((each) => typeof each === 'boolean')) dtype = 'bool';
    else dtype = flat.some((each) => typeof each === 'bigint') ? 'int64' : 'float32';
  }
  const Type = ARRAYS[dtype];
  if (!Type) throw failure(TypeError, 'DTYPE_ERROR', `tensor: there is no dtype ${dtype} of elements`);
  if (typed && !(values instanceof Type)) {
    const text = `tensor: elements of ${dtype} are a ${Type.name}, got a ${values.constructor.name}`;
    throw failure(TypeError, 'DTYPE_ERROR', text);
  }
  return new Tensor(native.tensor_new(dtype, shape ?? [flat.length], typed ? values : elements(Type, flat)));
}

function elements(Type, flat) {
  const big = Type === BigInt64Array || Type === BigUint64Array;
  for (const each of flat) {
    const allowed = typeof each === 'boolean' || typeof each === 'number' || (big && typeof each === 'bigint');
    if (!allowed) {
      throw failure(TypeError, 'TYPE_ERROR', `tensor: elements must be numbers, got ${typeof each}`);
    }
  }
  return Type.from(flat, big ? (each) => BigInt(each) : undefined);
}

function shapeOf(values) {
  if (!Array.isArray(values)) return [];
  const shapes = values.map(shapeOf);
  if (shapes.some((shape) => String(shape) !== String(shapes[0]))) {
    throw failure(RangeError, 'SHAPE_ERROR', 'tensor: nested arrays must have the same lengths');
  }
  return [values.length, ...(shapes[0] ?? [])];
}

// Run a function, and free the tensors that it made besides those that it returns, alone or in an
// array or object. Functions that train need it, as JavaScript collects no tensors while they run.
function tidy(run) {
  const outer = scope;
  scope = [];
  try {
    const result = run();
    if (typeof result?.then === 'function') {
      throw failure(TypeError, 'TYPE_ERROR', 'tidy: the function must not be asynchronous');
    }
    const kept = new Set([result, ...(isOptions(result) || Array.isArray(result) ? Object.values(result) : [])]);
    const mine = scope;
    scope = mine.filter((each) => !kept.has(each));
    if (outer) outer.push(...mine.filter((each) => kept.has(each)));
    return result;
  } finally {
    for (const each of scope) each.free();
    scope = outer;
  }
}

// Run a function whose operators are not recorded.
function noGrad(run) {
  const before = native.grad_enabled();
  native.set_grad_enabled(false);
  try {
    return run();
  } finally {
    native.set_grad_enabled(before);
  }
}

// The gradients of a tensor with respect to others, which are not changed; null where it does not
// depend on one.
function gradients(of, inputs, { gradient = null, retainGraph = false, createGraph = false } = {}) {
  const values = [unwrap(of), unwrap(gradient), unwrap(inputs), retainGraph, createGraph];
  return native.backward(...values).map(wrap);
}

// Load the libraries of plait, once for the process. `folders` are separated by colons; in each, a
// library lies directly, or in `plait_core/lib` and so on.
function load(folders = process.env.PLAIT_LIBRARIES ?? '') {
  native.load(folders);
}

module.exports = {
  ARRAYS, Generator, Tensor, call, failure, gradients, load, noGrad, operators: native.operators, ops, tensor, tidy,
};
