'use strict';
// The compiled addon.
const path = require('node:path');

const file = path.join(__dirname, 'generated', 'plait.node');
try {
  module.exports = require(file);
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') throw error;
  throw new Error(`${file} was not found: run node build.js in ${__dirname}`);
}
