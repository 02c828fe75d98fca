'use strict';
// Bindings of plait: tensors with operators and gradients, optimizers, and saved graphs.
const { Generator, Tensor, call, gradients, load, noGrad, operators, ops, tensor, tidy } = require('./tensor');
const { Graph } = require('./graph');
const { Adam, Sgd } = require('./optim');

module.exports = {
  Adam, Generator, Graph, Sgd, Tensor, call, gradients, load, noGrad, operators, ops, tensor, tidy,
};
