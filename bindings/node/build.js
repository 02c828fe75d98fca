'use strict';
// Write the generated sources with tools/bindings, and compile the addon: node build.js
//
// PYTHON names a Python in which plait is installed (python3), CXX the compiler (c++), and
// NODE_INCLUDE the folder with node_api.h.
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const python = process.env.PYTHON || 'python3';
const compiler = (process.env.CXX || 'c++').split(' ');
const generator = path.join(__dirname, '..', '..', 'tools', 'bindings');
const generated = path.join(__dirname, 'generated');

const prefix = path.dirname(path.dirname(process.execPath));
const folders = [process.env.NODE_INCLUDE, path.join(prefix, 'include', 'node'), '/usr/include/node'];
const include = folders.find((folder) => folder && fs.existsSync(path.join(folder, 'node_api.h')));
if (!include) throw new Error('node_api.h was not found: set NODE_INCLUDE to its folder');

execFileSync(python, [generator, 'node', generated], { stdio: 'inherit' });
const headers = execFileSync(python, [generator, 'headers'], { encoding: 'utf8' }).trim();
const sources = fs.readdirSync(path.join(__dirname, 'addon')).filter((name) => name.endsWith('.cpp'));
execFileSync(
  compiler[0],
  [
    ...compiler.slice(1),
    ...['-std=c++17', '-O2', '-Wall', '-Wextra', '-shared', '-fPIC', '-fvisibility=hidden'],
    ...[include, generated, ...headers.split(':')].map((folder) => `-I${folder}`),
    ...sources.map((name) => path.join(__dirname, 'addon', name)),
    ...['-o', path.join(generated, 'plait.node')],
  ],
  { stdio: 'inherit' },
);
