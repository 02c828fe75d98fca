'use strict';
// Saved graphs: a file that plait_graph.export wrote runs and trains, by libplait_run.
const native = require('./native');
const { ARRAYS, failure } = require('./tensor');

const KINDS = { input: 1, output: 2, weight: 3, number: 4 };

class Graph {
  #handle;

  // Open a file. Nothing of it is executed. `load` is not needed before.
  constructor(path, settings = {}) {
    const libraries = settings.libraries ?? process.env.PLAIT_LIBRARIES ?? '';
    this.#handle = native.run_open(path, { ...settings, libraries });
  }

  #index(kind, name) {
    const index = native.run_find(this.#handle, KINDS[kind], name);
    if (index >= 0) return index;
    const names = this.#names(kind).join(', ');
    throw failure(RangeError, 'INDEX_ERROR', `there is no ${kind} ${name}; there are: ${names}`);
  }

  #list(kind) {
    const count = native.run_count(this.#handle, KINDS[kind]);
    return Array.from({ length: count }, (_, i) => native.run_get(this.#handle, KINDS[kind], i));
  }

  #names(kind) {
    return this.#list(kind).map((each) => each.name);
  }

  // Names, dtypes and shapes.
  get inputs() {
    return this.#list('input');
  }
  get outputs() {
    return this.#list('output');
  }
  get weights() {
    return this.#list('weight');
  }
  // The names of numbers, such as a learning rate or a free size.
  get numbers() {
    return this.#names('number');
  }

  #write(kind, name, elements) {
    const index = this.#index(kind, name);
    const { dtype } = native.run_get(this.#handle, KINDS[kind], index);
    const Type = ARRAYS[dtype];
    if (Type && !(elements instanceof Type)) {
      throw failure(TypeError, 'DTYPE_ERROR', `${kind} ${name} has dtype ${dtype}: a ${Type.name} is required`);
    }
    native.run_set(this.#handle, KINDS[kind], index, elements, 0);
  }

  #read(kind, name) {
    const index = this.#index(kind, name);
    const buffer = native.run_read(this.#handle, KINDS[kind], index);
    if (buffer === null) {
      throw failure(RangeError, 'VALUE_ERROR', `${kind} ${name} has no value yet: run the graph first`);
    }
    const { dtype } = native.run_get(this.#handle, KINDS[kind], index);
    return new (ARRAYS[dtype] ?? Uint8Array)(buffer);
  }

  // Set an input or a weight to copies of the elements of a typed array, which are in C order.
  setInput(name, elements) {
    this.#write('input', name, elements);
  }
  setWeight(name, elements) {
    this.#write('weight', name, elements);
  }
  // Run the graph once. All inputs must be set.
  execute() {
    native.run_execute(this.#handle);
  }
  // Copies of the elements, as a typed array.
  output(name) {
    return this.#read('output', name);
  }
  weight(name) {
    return this.#read('weight', name);
  }
  number(name) {
    return this.#read('number', name)[0];
  }
  setNumber(name, value) {
    if (typeof value !== 'number') {
      throw failure(TypeError, 'TYPE_ERROR', `setNumber: ${name} must be a number, got ${typeof value}`);
    }
    this.#write('number', name, new Float64Array([value]));
  }
  // Write graph, weights and numbers as they are now to a file.
  save(path) {
    native.run_save(this.#handle, path);
  }
  // An upper bound of the bytes of all tensors during a run.
  get memory() {
    return native.run_memory(this.#handle);
  }
  // Free the graph now, rather than when it is collected. Its later use is an error.
  close() {
    native.free(this.#handle);
  }
}

module.exports = { Graph };
