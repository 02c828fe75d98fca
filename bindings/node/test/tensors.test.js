'use strict';
// Tensors, operators and gradients. They need the libraries: PLAIT_LIBRARIES names the folders.
const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const plait = require('..');

const { ops, tensor } = plait;

function refuses(run, code, text) {
  assert.throws(run, (error) => {
    assert.equal(error.code, code, error.message);
    if (text) assert.match(error.message, text);
    return true;
  });
}

test('nothing works before load', () => {
  refuses(() => tensor([1]), 'ERROR', /call load first/);
  refuses(() => plait.load('/no/such/folder'), 'ERROR', /libplait_abi.so is not there; looked in \/no\/such/);
  plait.load();
});

test('elements come and go', () => {
  const x = tensor([[1, 2, 3], [4, 5, 6]]);
  assert.deepEqual(x.shape, [2, 3]);
  assert.equal(x.dtype, 'float32');
  assert.equal(x.device, 'cpu');
  assert.deepEqual(x.t().toArray(), [[1, 4], [2, 5], [3, 6]]); // a view that is not in C order
  assert.deepEqual(tensor([true, false]).logical_not().toArray(), [false, true]);
  assert.deepEqual(tensor(new BigInt64Array([1n, -2n])).data(), new BigInt64Array([1n, -2n]));
  assert.deepEqual(tensor(new Float64Array(4), { shape: [2, 2] }).shape, [2, 2]);
  assert.deepEqual(tensor([], { dtype: 'int64', shape: [0, 2] }).toArray(), []);
  assert.equal(tensor(7, { dtype: 'int32' }).item(), 7);
  assert.deepEqual(tensor([1, 2], { dtype: 'int64' }).toArray(), [1, 2]);
});

test('operators take numbers, lists and options', () => {
  const x = tensor([[1, 2], [3, 4]], { dtype: 'int64' });
  assert.deepEqual(x.mul(2).toArray(), [[2, 4], [6, 8]]);
  assert.equal(x.mul(0.5).dtype, 'float32'); // a number promotes weakly
  assert.deepEqual(x.sum({ dim: 1 }).toArray(), [3, 7]);
  assert.deepEqual(x.sum(1, { keepdim: true }).shape, [2, 1]);
  const [values, indices] = x.max_dim(0);
  assert.deepEqual([values.toArray(), indices.toArray()], [[3, 4], [1, 1]]);
  assert.deepEqual(ops.cat(x.split(1).reverse()).toArray(), [[3, 4], [1, 2]]);
  assert.deepEqual(ops.conv2d(ops.ones([1, 1, 4, 4]), ops.ones([1, 1, 2, 2]), { stride: 2 }).shape, [1, 1, 2, 2]);
  assert.deepEqual(ops.index(x, [null, tensor([1], { dtype: 'int64' })]).toArray(), [[2], [4]]);
  assert.equal(x.add_(x).shape.length, 2);
  assert.deepEqual(x.toArray(), [[2, 4], [6, 8]]);
  assert.equal(ops.cast(x, 'float64').dtype, 'float64');
  assert.equal(ops.ones([2], { device: 'meta' }).device, 'meta');
});

test('seeds name numbers', () => {
  const draw = (seed) => ops.rand([3], { generator: new plait.Generator(seed) }).toArray();
  assert.deepEqual(draw(1), draw(1));
  assert.notDeepEqual(draw(1), draw(2));
});

test('gradients flow', () => {
  const x = tensor(new Float64Array([1, 2]));
  x.requiresGrad = true;
  x.mul(x).sum().backward();
  assert.deepEqual(x.grad.toArray(), [2, 4]);
  x.grad = null;
  assert.equal(x.grad, null);
  const [first] = plait.gradients(x.mul(x).mul(x).sum(), [x], { createGraph: true });
  const [second, none] = plait.gradients(first.sum(), [x, tensor([1])].slice(0, 1));
  assert.deepEqual([second.toArray(), none], [[6, 12], undefined]);
  plait.noGrad(() => x.sub_(1));
  assert.equal(plait.noGrad(() => x.exp()).requiresGrad, false);
  assert.equal(x.exp().requiresGrad, true);
});

test('optimizers make the loss smaller', () => {
  for (const make of [(p) => new plait.Adam(p, { lr: 0.1 }), (p) => new plait.Sgd(p, { lr: 0.1, momentum: 0.5 })]) {
    const w = tensor([3, -2]);
    w.requiresGrad = true;
    const optimizer = make([w, tensor([1])]); // the second one has no gradient
    const losses = Array.from({ length: 20 }, () => {
      optimizer.zeroGrad();
      const loss = w.mul(w).sum();
      loss.backward();
      optimizer.step();
      return loss.item();
    });
    assert.ok(losses.at(-1) < losses[0] / 2, String(losses));
  }
});

test('bad arguments are errors that name the operator', () => {
  const x = ops.ones([2, 3]);
  refuses(() => x.mm(x), 'SHAPE_ERROR', /^mm: /);
  refuses(() => x.sum({ dim: 5 }), 'INDEX_ERROR', /dim/);
  refuses(() => ops.linalg_inv(tensor([[1]], { dtype: 'int64' })), 'DTYPE_ERROR');
  refuses(() => x.sum(1, true, 3), 'TYPE_ERROR', /^sum: at most 3 arguments by position, got 4/);
  refuses(() => x.sum({ axes: 1 }), 'TYPE_ERROR', /`axes`: there is no such argument/);
  refuses(() => x.sum(1, { dim: 1 }), 'TYPE_ERROR', /`dim`: it was passed twice/);
  refuses(() => x.add(), 'TYPE_ERROR', /^add: the argument `other` is required/);
  refuses(() => x.add(null), 'TYPE_ERROR', /^add: `other` must be a tensor or a number, got null/);
  refuses(() => x.add('1'), 'TYPE_ERROR', /^add: `other` must be a tensor or a number/);
  refuses(() => x.softmax(1.5), 'TYPE_ERROR', /^softmax: `dim` must be a whole number/);
  refuses(() => x.softmax(2n ** 70n), 'VALUE_ERROR', /64 bits/);
  refuses(() => ops.conv2d(x, x, { stride: [1, 1, 1] }), 'TYPE_ERROR', /`stride` must be a whole number or 2 of/);
  refuses(() => ops.cat([x, null]), 'TYPE_ERROR', /^cat: `tensors` must be an array of tensors/);
  refuses(() => ops.cast(x, 'float31'), 'TYPE_ERROR', /there is no dtype float31/);
  refuses(() => ops.ones([1], { device: 'gpu' }), 'TYPE_ERROR', /`device` must be the name of a device/);
  refuses(() => ops.ones([1], { generator: 1 }), 'TYPE_ERROR');
  refuses(() => plait.call('no such'), 'NOT_IMPLEMENTED');
  refuses(() => tensor([1, 2, 3], { shape: [2, 2] }), 'SHAPE_ERROR', /4 elements, the data have 3/);
  refuses(() => tensor([1], { shape: [-1] }), 'SHAPE_ERROR');
  refuses(() => tensor([1], { shape: [2 ** 40, 2 ** 40] }), 'SHAPE_ERROR');
  refuses(() => tensor([1], { shape: Array(65).fill(1) }), 'SHAPE_ERROR');
  refuses(() => tensor([[1], [2, 3]]), 'SHAPE_ERROR');
  refuses(() => tensor(['1']), 'TYPE_ERROR');
  refuses(() => tensor(new Float32Array(2), { dtype: 'int32' }), 'DTYPE_ERROR');
  refuses(() => tensor(Object.create(Float32Array.prototype)), 'TYPE_ERROR');
  refuses(() => tensor(new DataView(new ArrayBuffer(4))), 'DTYPE_ERROR');
  refuses(() => x.item(), 'SHAPE_ERROR');
  refuses(() => x.backward(), 'ERROR');
  refuses(() => tensor([2 ** 53], { dtype: 'int64' }).toArray(), 'VALUE_ERROR');
  refuses(() => ops.ones([2], { device: 'meta' }).data(), 'NOT_IMPLEMENTED', /^data: a tensor on the device meta/);
});

test('freed tensors and foreign objects are refused', () => {
  const x = tensor([1, 2]);
  const view = x.reshape([2, 1]);
  x.free();
  x.free();
  refuses(() => x.relu(), 'VALUE_ERROR', /the tensor was freed/);
  refuses(() => x.shape, 'VALUE_ERROR', /freed/);
  assert.deepEqual(view.toArray(), [[1], [2]]); // the memory is that of the view, too
  refuses(() => ops.relu({}), 'TYPE_ERROR');
  refuses(() => ops.relu(new plait.Generator(1)), 'TYPE_ERROR', /must be a tensor/);
  refuses(() => plait.Tensor.prototype.relu.call({}), 'TYPE_ERROR');
  refuses(() => new plait.Generator(-1), 'TYPE_ERROR');
  // a getter that frees a tensor which the call has seen already
  const first = tensor([1, 2]);
  const list = [first, tensor([3])];
  const hostile = new Proxy(list, {
    get(target, name) {
      if (name === '1') first.free();
      return target[name];
    },
  });
  try {
    ops.cat(hostile);
  } catch (error) {
    assert.equal(error.code, 'VALUE_ERROR');
  }
});

test('tidy frees what a function made', () => {
  let inner;
  const [kept] = plait.tidy(() => {
    inner = tensor([1, 2]);
    return [inner.mul(2)];
  });
  assert.deepEqual(kept.toArray(), [2, 4]);
  refuses(() => inner.shape, 'VALUE_ERROR', /freed/);
  assert.throws(() => plait.tidy(() => {
    inner = tensor([1]);
    throw new Error('mine');
  }), /mine/);
  refuses(() => inner.shape, 'VALUE_ERROR', /freed/);
  refuses(() => plait.tidy(async () => tensor([1])), 'TYPE_ERROR');
});

test('meaningless values are errors, for every operator', () => {
  const x = ops.ones([2, 3]);
  const values = [
    null, -(2 ** 52), NaN, true, [], Array(3).fill(2 ** 52), [x, ops.ones([0]), tensor(true)], [null, null],
    '?', 'bool', {}, ops.ones([0]), new plait.Generator(1), -0, 1n,
  ];
  let refused = 0;
  Error.stackTraceLimit = 0; // traces take most of the time
  for (const name of plait.operators()) {
    for (const value of values) {
      for (let count = 0; count < 5; count += 1) {
        try {
          plait.tidy(() => plait.call(name, ...Array(count).fill(value)));
        } catch (error) {
          assert.ok(error.code, `${name}: ${error.stack}`);
          refused += 1;
        }
      }
    }
  }
  assert.ok(refused > 1000);
});

test('threads compute at once', async () => {
  const program = `
    const { parentPort, workerData } = require('node:worker_threads');
    const plait = require(workerData.path);
    plait.load();
    const x = plait.ops.rand([8, 8], { generator: new plait.Generator(workerData.seed) });
    x.requiresGrad = true;
    for (let i = 0; i < 20; i += 1) x.mm(x).sum().backward();
    parentPort.postMessage(x.sum().item());
  `;
  const path = require.resolve('..');
  const sums = await Promise.all([1, 2, 3].map((seed) => new Promise((resolve, reject) => {
    const worker = new Worker(program, { eval: true, workerData: { path, seed } });
    worker.on('message', resolve);
    worker.on('error', reject);
  })));
  assert.ok(sums.every((sum) => sum > 0));
  // a tensor stays where it was made
  assert.throws(() => structuredClone(tensor([1])[Object.getOwnPropertySymbols(tensor([1]))[0]]));
});
