import { Methods, Operators } from './generated/operators';

export type DType =
  | 'bool' | 'uint8' | 'uint16' | 'uint32' | 'uint64' | 'int8' | 'int16' | 'int32' | 'int64'
  | 'float16' | 'bfloat16' | 'float32' | 'float64' | 'complex64' | 'complex128';
export type Scalar = number | bigint | boolean;
type Nested = Scalar | Nested[];
export type TypedArray =
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array | Int8Array | Int16Array | Int32Array
  | BigInt64Array | Float32Array | Float64Array;

export interface BackwardOptions {
  gradient?: Tensor | null;
  retainGraph?: boolean;
  createGraph?: boolean;
}

export class Generator {
  constructor(seed: number);
}

export interface Tensor extends Methods {}
export class Tensor {
  private constructor();
  readonly shape: number[];
  readonly dtype: DType;
  readonly device: string;
  readonly size: number;
  requiresGrad: boolean;
  grad: Tensor | null;
  data(): TypedArray;
  toArray(): any;
  item(): number | boolean;
  backward(options?: BackwardOptions): void;
  free(): void;
}

export interface Description {
  name: string;
  dtype: DType | null;
  shape: number[];
}

export class Graph {
  constructor(
    path: string,
    settings?: { libraries?: string; memoryLimit?: number; threads?: number; mapWeights?: boolean },
  );
  readonly inputs: Description[];
  readonly outputs: Description[];
  readonly weights: Description[];
  readonly numbers: string[];
  readonly memory: number;
  setInput(name: string, elements: TypedArray): void;
  setWeight(name: string, elements: TypedArray): void;
  execute(): void;
  output(name: string): TypedArray;
  weight(name: string): TypedArray;
  number(name: string): number;
  setNumber(name: string, value: number): void;
  save(path: string): void;
  close(): void;
}

declare class Optimizer {
  lr: number;
  step(): void;
  zeroGrad(): void;
}
export class Adam extends Optimizer {
  constructor(
    parameters: Tensor[],
    options?: { lr?: number; betas?: [number, number]; eps?: number; weightDecay?: number; decoupled?: boolean },
  );
}
export class Sgd extends Optimizer {
  constructor(parameters: Tensor[], options?: { lr?: number; momentum?: number });
}

export const ops: Operators;
export function tensor(values: TypedArray | Nested, options?: { shape?: number[]; dtype?: DType }): Tensor;
export function load(folders?: string): void;
export function call(name: string, ...values: any[]): any;
export function operators(): string[];
export function gradients(of: Tensor, inputs: Tensor[], options?: BackwardOptions): (Tensor | null)[];
export function noGrad<T>(run: () => T): T;
export function tidy<T>(run: () => T): T;
