// Columns of numbers: from base64 and deflate to typed arrays.

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A column has all lowest bytes of its numbers first, then all second ones, and so on.
function numbers(bytes, offset, { count, bytes: width }) {
  const values = width > 4 ? new Float64Array(count) : new Uint32Array(count);
  for (let place = 0, factor = 1; place < width; place++, factor *= 256) {
    const from = offset + place * count;
    for (let i = 0; i < count; i++) values[i] += bytes[from + i] * factor;
  }
  return values;
}

async function readColumns(described) {
  const text = document.getElementById("columns");
  const bytes = await inflated(bytesOfBase64(text.textContent));
  text.remove();
  const columns = {};
  let offset = 0;
  for (const [name, column] of Object.entries(described)) {
    columns[name] = numbers(bytes, offset, column);
    offset += column.count * column.bytes;
  }
  return columns;
}

// The first index in [low, high) for which `reached` holds; it holds for all behind it.
function firstIndex(low, high, reached) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
