// A picture of few colours with few bytes: the commonest 256 colours, and for the others the nearest of them.
// Of the PNG standard (ISO/IEC 15948): colour type 2 or 6 in, 8 bits, not interlaced; colour type 3 out.
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const paeth = (left, up, corner) => {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
};

function pixels(png) {
  const data = [];
  let width, height, channels;
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const kind = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (kind === 'IHDR') [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9] === 6 ? 4 : 3];
    if (kind === 'IDAT') data.push(body);
    at += 12 + length;
  }
  const raw = inflateSync(Buffer.concat(data));
  const row = width * channels;
  const out = Buffer.alloc(row * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (row + 1)];
    for (let x = 0; x < row; x += 1) {
      const at = y * row + x;
      const left = x >= channels ? out[at - channels] : 0;
      const up = y > 0 ? out[at - row] : 0;
      const corner = x >= channels && y > 0 ? out[at - row - channels] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      out[at] = raw[y * (row + 1) + 1 + x] + guess;
    }
  }
  return { width, height, channels, out };
}

function chunk(kind, body) {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length, 0);
  head.write(kind, 4, 'latin1');
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(Buffer.concat([head.subarray(4), body])), 0);
  return Buffer.concat([head, body, end]);
}

export function smaller(png) {
  const { width, height, channels, out } = pixels(png);
  const counts = new Map();
  const colour = at => (out[at] << 16) | (out[at + 1] << 8) | out[at + 2];
  for (let at = 0; at < out.length; at += channels) counts.set(colour(at), (counts.get(colour(at)) ?? 0) + 1);
  const palette = [...counts].sort((one, other) => other[1] - one[1]).slice(0, 256).map(([value]) => value);
  const parts = value => [value >> 16, (value >> 8) & 255, value & 255];
  const places = new Map(palette.map((value, place) => [value, place]));
  const place = value => {
    const known = places.get(value);
    if (known !== undefined) return known;
    let best = 0, least = Infinity;
    palette.forEach((other, index) => {
      const distance = parts(value).reduce((sum, part, at) => sum + (part - parts(other)[at]) ** 2, 0);
      if (distance < least) [best, least] = [index, distance];
    });
    places.set(value, best);
    return best;
  };
  const raw = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) raw[y * (width + 1) + 1 + x] = place(colour((y * width + x) * channels));
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  [head[8], head[9]] = [8, 3];
  return Buffer.concat([png.subarray(0, 8), chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap(parts))),
    chunk('IDAT', deflateSync(raw, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
