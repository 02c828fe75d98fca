/**
 * Run graphs of plait in WebAssembly: in a browser or in Node.
 *
 * ```js
 * import {load} from "./plait_run.js";
 *
 * const runtime = await load("model.wasm");
 * const graph = runtime.open(await (await fetch("model.safetensors")).arrayBuffer());
 * const {output} = graph.run({x: new Float32Array(784)});
 * console.log(output.shape, output.data);
 * graph.close();
 * ```
 *
 * `plait_graph.bundle(..., target="wasm32")` compiles the module and writes this file beside it. The
 * functions are those of plait/run.h, which has more about each of them. All calls are synchronous;
 * to compute without blocking a page, use this file in a worker.
 */

/** An error of the runtime: its text, and its code, one of `ERRORS`. */
export class PlaitError extends Error {
  constructor(message, code) {
    super(message);
    this.name = "PlaitError";
    this.code = code;
  }
}

/** The codes of errors, as in plait/run.h. */
export const ERRORS = Object.freeze({
  ERROR: -1,
  SHAPE: -2,
  DTYPE: -3,
  VALUE: -4,
  INDEX: -5,
  MEMORY: -7,
});

const INPUT = 1, OUTPUT = 2, WEIGHT = 3, NUMBER = 4;
const KINDS = {[INPUT]: "input", [OUTPUT]: "output", [WEIGHT]: "weight", [NUMBER]: "number"};

// Halves and numbers of 8 bits are given as their bits, complex numbers as pairs.
const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  uint64: BigUint64Array,
  int64: BigInt64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  complex64: Float32Array,
  complex128: Float64Array,
};
const arrayOf = (dtype) => ARRAYS[dtype] ?? Uint8Array;

// Offsets in the structs of plait/run.h, with pointers of 32 bits.
const TENSOR = {size: 48, name: 8, dtype: 12, shape: 16, strides: 20, data: 24, nbytes: 32, ndim: 40};
const SETTINGS = {size: 32, memoryLimit: 16};

/** Compile a module and start its runtime.
 *
 * @param source the address of the module as a string or a URL, its bytes, or a WebAssembly.Module
 * @returns {Promise<Runtime>}
 */
export async function load(source) {
  const module = source instanceof WebAssembly.Module
      ? source : await WebAssembly.compile(await bytesOf(source));
  const system = new System();
  const instance = await WebAssembly.instantiate(module, system.imports(module));
  system.memory = instance.exports.memory;
  instance.exports._initialize?.();
  return new Runtime(instance.exports);
}

async function bytesOf(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const address = new URL(source, globalThis.location?.href ?? `file://${process.cwd()}/`);
  if (address.protocol === "file:" && globalThis.process?.versions?.node)
    return (await import("node:fs/promises")).readFile(address);
  const response = await fetch(address);
  if (!response.ok)
    throw new PlaitError(`${address}: the server answers ${response.status}`, ERRORS.ERROR);
  return response.arrayBuffer();
}

// What the module imports of the system: a clock, random bytes, and texts to the console.
class System {
  imports(module) {
    const result = {};
    for (const {module: group, name} of WebAssembly.Module.imports(module)) {
      // 52: the function does not exist (ENOSYS of WASI)
      (result[group] ??= {})[name] = this[name] ? this[name].bind(this) : () => 52;
    }
    return result;
  }

  get view() {
    return new DataView(this.memory.buffer);
  }

  emscripten_notify_memory_growth() {}

  proc_exit(code) {
    throw new PlaitError(`the runtime ended with the code ${code}`, ERRORS.ERROR);
  }

  clock_time_get(id, precision, time) {
    const now = id === 0 ? Date.now() : performance.now();
    this.view.setBigUint64(time, BigInt(Math.round(now * 1e6)), true);
    return 0;
  }

  random_get(data, nbytes) {
    crypto.getRandomValues(new Uint8Array(this.memory.buffer, data, nbytes));
    return 0;
  }

  environ_sizes_get(count, nbytes) {
    this.view.setUint32(count, 0, true);
    this.view.setUint32(nbytes, 0, true);
    return 0;
  }

  environ_get() {
    return 0;
  }

  fd_write(file, parts, count, written) {
    let text = "", total = 0;
    for (let i = 0; i < count; i++) {
      const data = this.view.getUint32(parts + 8 * i, true);
      const nbytes = this.view.getUint32(parts + 8 * i + 4, true);
      text += new TextDecoder().decode(new Uint8Array(this.memory.buffer, data, nbytes));
      total += nbytes;
    }
    console.error(text.trimEnd());
    this.view.setUint32(written, total, true);
    return 0;
  }
}

/** A module with its memory. Graphs of one runtime share its memory. */
export class Runtime {
  #exports;
  #scratch;
  #failure = null;

  constructor(exports) {
    this.#exports = exports;
    this.#scratch = this.allocate(64);
  }

  /** Open a file that `plait_graph.export` wrote.
   *
   * @param {ArrayBuffer|Uint8Array} bytes of the file
   * @param {{memoryLimit?: number}} options bytes that tensors of all graphs may take together
   * @returns {Graph}
   */
  open(bytes, {memoryLimit = 0} = {}) {
    const data = asBytes(bytes);
    if (!data)
      throw new PlaitError("open: an ArrayBuffer or a Uint8Array is required", ERRORS.VALUE);
    if (!Number.isSafeInteger(memoryLimit) || memoryLimit < 0)
      throw new PlaitError(`open: memoryLimit must be a number of bytes, got ${memoryLimit}`,
                           ERRORS.VALUE);
    return this.withBytes(data, (address) => {
      const at = this.#scratch, result = at + SETTINGS.size;
      this.bytes.fill(0, at, at + 64);
      this.view.setBigUint64(at, BigInt(SETTINGS.size), true);
      this.view.setBigUint64(at + SETTINGS.memoryLimit, BigInt(memoryLimit), true);
      const code = this.call("plait_run_open_memory", address, BigInt(data.length), at, result);
      const handle = this.view.getUint32(result, true);
      if (code === 0) return new Graph(this, handle);
      const error = new PlaitError(this.errorText(handle), code);
      this.call("plait_run_close", handle);
      throw error;
    });
  }

  // The rest is for Graph.

  get view() {  // anew at each use: memory that grows has a new buffer
    return new DataView(this.#exports.memory.buffer);
  }

  get bytes() {
    return new Uint8Array(this.#exports.memory.buffer);
  }

  get scratch() {
    return this.#scratch;
  }

  /** Call a function of the module. After a trap its memory is in no defined state. */
  call(name, ...args) {
    if (this.#failure) throw this.#failure;
    try {
      return this.#exports[name](...args);
    } catch (error) {
      this.#failure = new PlaitError(`the runtime failed in ${name}: ${error.message}; load it anew`,
                                     ERRORS.ERROR);
      this.#failure.cause = error;
      throw this.#failure;
    }
  }

  allocate(nbytes) {
    // one more, as the address 0 means that there is no memory
    const address = nbytes < 2 ** 32 - 1 ? this.call("malloc", nbytes + 1) >>> 0 : 0;
    if (!address) throw new PlaitError(`no memory for ${nbytes} bytes`, ERRORS.MEMORY);
    return address;
  }

  /** Call a function with the address of a copy of bytes, which is freed after it. */
  withBytes(data, body) {
    const address = this.allocate(data.length);
    try {
      this.bytes.set(data, address);
      return body(address);
    } finally {
      if (!this.#failure) this.call("free", address);
    }
  }

  text(address) {
    const bytes = this.bytes;
    return new TextDecoder().decode(bytes.subarray(address, bytes.indexOf(0, address)));
  }

  errorText(handle) {
    return this.text(this.call("plait_run_error", handle) >>> 0);
  }
}

/** A graph with its weights, as `Runtime.open` returns it. */
export class Graph {
  #runtime;
  #handle;
  #names;

  constructor(runtime, handle) {
    this.#runtime = runtime;
    this.#handle = handle;
    this.#names = {};
    for (const kind of [INPUT, OUTPUT, WEIGHT, NUMBER]) {
      const names = [];
      const n = runtime.call("plait_run_count", handle, kind);
      for (let i = 0; i < n; i++) names.push(this.#describe(kind, i).name);
      this.#names[kind] = Object.freeze(names);
    }
  }

  /** Names of inputs. */
  get inputs() { return this.#names[INPUT]; }
  /** Names of outputs. */
  get outputs() { return this.#names[OUTPUT]; }
  /** Names of weights: parameters, buffers, the state of an optimizer, constants. */
  get weights() { return this.#names[WEIGHT]; }
  /** Names of numbers, such as a learning rate, and of free sizes. */
  get numbers() { return this.#names[NUMBER]; }

  /** Run the graph once; of a graph for training that is one step, which changes weights.
   *
   * @param inputs arrays by name, or the array of the only input. An input that is left out keeps
   *     its value. A typed array has the type of the input's dtype; others are converted.
   * @returns {Object<string, {dtype: string, shape: number[], data: TypedArray}>} outputs by name
   */
  run(inputs = {}) {
    const isArray = Array.isArray(inputs) || ArrayBuffer.isView(inputs);
    if (isArray && this.inputs.length !== 1)
      throw new PlaitError(`run: the graph has the inputs ${this.inputs.join(", ")}; `
                           + "an object with arrays by name is required", ERRORS.VALUE);
    for (const [name, data] of Object.entries(isArray ? {[this.inputs[0]]: inputs} : inputs))
      this.#set(INPUT, name, data);
    this.#checked(this.#runtime.call("plait_run_execute", this.#open()));
    return Object.fromEntries(
        this.outputs.map((name, i) => [name, this.#tensor(OUTPUT, i)]));
  }

  /** The dtype and the shape of an input, for the sizes that are set. */
  input(name) {
    const {dtype, shape} = this.#describe(INPUT, this.#find(INPUT, name));
    return {dtype, shape};
  }

  /** A copy of a weight: its dtype, shape and data. */
  weight(name) {
    return this.#tensor(WEIGHT, this.#find(WEIGHT, name));
  }

  /** Set a weight to elements in C order. */
  setWeight(name, data) {
    this.#set(WEIGHT, name, data);
  }

  /** Set the weights whose names another graph has, too; return these names. */
  copyWeights(other) {
    const names = this.weights.filter((name) => other.weights.includes(name));
    for (const name of names) this.setWeight(name, other.weight(name).data);
    return names;
  }

  /** The value of a number. */
  number(name) {
    return this.#tensor(NUMBER, this.#find(NUMBER, name)).data[0];
  }

  /** Set a number, from the next run on. */
  setNumber(name, value) {
    if (typeof value !== "number")
      throw new PlaitError(`setNumber: ${name} must be a number, got ${typeof value}`, ERRORS.VALUE);
    this.#set(NUMBER, name, new Float64Array([value]));
  }

  /** The bytes of a file with the graph, its weights and its numbers as they are now. */
  save() {
    const at = this.#runtime.scratch;
    this.#checked(this.#runtime.call("plait_run_save_memory", this.#open(), at, at + 8));
    const view = this.#runtime.view, data = view.getUint32(at, true);
    return this.#runtime.bytes.slice(data, data + Number(view.getBigUint64(at + 8, true)));
  }

  /** An upper bound of the bytes of all tensors during a run, without scratch memory of kernels. */
  get memory() {
    return Number(this.#runtime.call("plait_run_memory", this.#open()));
  }

  /** Free the graph and its tensors. */
  close() {
    if (this.#handle) this.#runtime.call("plait_run_close", this.#handle);
    this.#handle = 0;
  }

  #open() {
    if (!this.#handle) throw new PlaitError("the graph is closed", ERRORS.VALUE);
    return this.#handle;
  }

  #checked(code) {
    if (code) throw new PlaitError(this.#runtime.errorText(this.#handle), code);
  }

  #find(kind, name) {
    const index = this.#names[kind].indexOf(name);
    if (index < 0)
      throw new PlaitError(`there is no ${KINDS[kind]} "${name}"; the graph has `
                           + (this.#names[kind].join(", ") || "none"), ERRORS.INDEX);
    return index;
  }

  #set(kind, name, data) {
    const index = this.#find(kind, name);
    const {dtype} = this.#describe(kind, index);
    const bytes = asBytes(converted(data, dtype, `${KINDS[kind]} "${name}"`));
    this.#runtime.withBytes(bytes, (address) => this.#checked(this.#runtime.call(
        "plait_run_set", this.#open(), kind, index, address, BigInt(bytes.length), 0)));
  }

  #describe(kind, index) {
    const at = this.#runtime.scratch;
    this.#runtime.view.setBigUint64(at, BigInt(TENSOR.size), true);
    this.#checked(this.#runtime.call("plait_run_get", this.#open(), kind, index, at));
    const view = this.#runtime.view, text = this.#runtime;
    const pointer = (offset) => view.getUint32(at + offset, true);
    const ndim = Math.max(view.getInt32(at + TENSOR.ndim, true), 0);
    const sizes = (offset) => Array.from(
        {length: ndim}, (_, i) => Number(view.getBigInt64(pointer(offset) + 8 * i, true)));
    return {
      name: text.text(pointer(TENSOR.name)),
      dtype: pointer(TENSOR.dtype) ? text.text(pointer(TENSOR.dtype)) : null,
      shape: sizes(TENSOR.shape),
      strides: sizes(TENSOR.strides),
      address: pointer(TENSOR.data),
      nbytes: Number(view.getBigUint64(at + TENSOR.nbytes, true)),
    };
  }

  // A copy of the elements in C order.
  #tensor(kind, index) {
    const {dtype, shape, strides, address, nbytes} = this.#describe(kind, index);
    const count = shape.reduce((n, size) => n * size, 1), itemSize = count ? nbytes / count : 1;
    const bytes = this.#runtime.bytes, result = new Uint8Array(nbytes);
    let dense = 1;
    const isDense = shape.every((_, i) => {
      const d = shape.length - 1 - i, matches = shape[d] === 1 || strides[d] === dense;
      dense *= shape[d];
      return matches;
    });
    if (isDense || !count) {
      result.set(bytes.subarray(address, address + nbytes));
    } else {
      const at = shape.map(() => 0);
      for (let i = 0; i < count; i++) {
        const from = address + itemSize * at.reduce((sum, n, d) => sum + n * strides[d], 0);
        result.set(bytes.subarray(from, from + itemSize), i * itemSize);
        for (let d = shape.length - 1; d >= 0 && ++at[d] === shape[d]; d--) at[d] = 0;
      }
    }
    return {dtype, shape, data: new (arrayOf(dtype))(result.buffer)};
  }
}

function asBytes(data) {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return null;
}

function converted(data, dtype, what) {
  const type = arrayOf(dtype);
  if (data instanceof type) return data;
  if (!Array.isArray(data))
    throw new PlaitError(`the ${what} is ${dtype}: ${type.name} or an array of numbers is required, `
                         + `got ${data?.constructor?.name ?? data}`, ERRORS.DTYPE);
  const wrong = data.findIndex((x) => !["number", "bigint", "boolean"].includes(typeof x));
  if (wrong >= 0)
    throw new PlaitError(`the ${what}: element ${wrong} is no number`, ERRORS.VALUE);
  if (["float16", "bfloat16"].includes(dtype) || !ARRAYS[dtype])
    throw new PlaitError(`the ${what} is ${dtype}: its bits in ${type.name} are required`,
                         ERRORS.DTYPE);
  try {
    return type.from(data, type.name.startsWith("Big") ? BigInt : Number);
  } catch (error) {  // BigInt(0.5)
    throw new PlaitError(`the ${what} is ${dtype}: ${error.message}`, ERRORS.VALUE);
  }
}
