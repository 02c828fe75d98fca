'use strict';
// Optimizers, by the fused steps of libplait_optim.
const { call, noGrad, ops } = require('./tensor');

// The part of both: a state for each parameter, which a step changes where there is a gradient.
class Optimizer {
  constructor(parameters, names) {
    this.entries = parameters.map((parameter) => ({
      parameter,
      steps: 0,
      arrays: names.map(() => ops.zeros_like(parameter)),
    }));
  }
  // Change the parameters by their gradients. Those without a gradient stay as they are.
  step() {
    const changed = this.entries.filter((entry) => (entry.gradient = entry.parameter.grad));
    for (const entry of changed) entry.steps += 1;
    noGrad(() => this.update(changed));
    for (const entry of changed) entry.gradient.free();
  }
  // Remove the gradients of the parameters.
  zeroGrad() {
    for (const { parameter } of this.entries) parameter.grad = null;
  }
}

const column = (entries, name) => entries.map((entry) => entry[name]);
const arrays = (entries, i) => entries.map((entry) => entry.arrays[i]);

// Adam, with the defaults of Kingma and Ba (2015); `decoupled` is the weight decay of AdamW.
class Adam extends Optimizer {
  constructor(parameters, { lr = 1e-3, betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0, decoupled = false } = {}) {
    super(parameters, ['first', 'second']);
    Object.assign(this, { lr, betas, eps, weightDecay, decoupled });
  }
  update(entries) {
    const lists = [column(entries, 'parameter'), column(entries, 'gradient'), arrays(entries, 0), arrays(entries, 1)];
    const options = [this.lr, ...this.betas, this.eps, this.weightDecay, this.decoupled];
    call('adam_step', ...lists, [], column(entries, 'steps'), ...options);
  }
}

// Gradient descent, with momentum as in Sutskever and others (2013).
class Sgd extends Optimizer {
  constructor(parameters, { lr = 1e-3, momentum = 0 } = {}) {
    super(parameters, momentum === 0 ? [] : ['buffer']);
    Object.assign(this, { lr, momentum });
  }
  update(entries) {
    const buffers = this.momentum === 0 ? [] : arrays(entries, 0);
    const lists = [column(entries, 'parameter'), column(entries, 'gradient'), buffers];
    call('sgd_step', ...lists, column(entries, 'steps'), this.lr, this.momentum);
  }
}

module.exports = { Adam, Sgd };
