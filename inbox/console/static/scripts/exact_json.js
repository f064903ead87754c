// Parses JSON without changing it: numbers and strings keep their original text. JavaScript would round large numbers.

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const LITERAL = /true|false|null/y;

// The API's limit for a request body. Responses add levels around payloads.
export const MAX_DEPTH = 32;

// Returns {kind: "object" | "array", children: [[name, node]]}, or {kind: "string" | "number" | "literal", text}. The names
// in an object are JSON text, those in an array are indexes.
export function parseExact(text, maxDepth = 2 * MAX_DEPTH) {
  let position = 0;

  function fail(message, at = position) {
    const before = text.slice(0, at).split("\n");
    throw new Error(`Line ${before.length}, column ${before.at(-1).length + 1}: ${message}.`);
  }

  function match(pattern) {
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.[0] ?? null;
    if (found !== null) position += found.length;
    return found;
  }

  function peek() {
    match(SPACE);
    return text[position];
  }

  function skip(character) {
    if (peek() !== character) return false;
    position += 1;
    return true;
  }

  function parseValue(depth) {
    if (peek() === undefined) fail("unexpected end");
    if ("{[".includes(peek()) && depth > maxDepth) fail(`nested more than ${maxDepth} levels deep`);
    if (skip("{")) return { kind: "object", children: parseChildren("}", depth) };
    if (skip("[")) return { kind: "array", children: parseChildren("]", depth) };
    if (peek() === '"') return { kind: "string", text: parseString() };
    const literal = match(LITERAL);
    if (literal) return { kind: "literal", text: literal };
    return { kind: "number", text: match(NUMBER) ?? fail("expected a value") };
  }

  function parseString() {
    return match(STRING) ?? fail("unterminated string, or a character in it that must be escaped");
  }

  function parseChildren(end, depth) {
    const found = [];
    if (skip(end)) return found;
    const names = new Set();
    do found.push([end === "}" ? parseName(names) : String(found.length), parseValue(depth + 1)]);
    while (skip(","));
    if (!skip(end)) fail(`expected a comma or ${end}`);
    return found;
  }

  function parseName(others) {
    if (peek() !== '"') fail("expected a name in double quotes");
    const start = position;
    const name = parseString();
    if (others.has(JSON.parse(name))) fail(`duplicate name ${name}`, start);
    others.add(JSON.parse(name));
    if (!skip(":")) fail("expected a colon");
    return name;
  }

  const node = parseValue(1);
  if (peek() !== undefined) fail("unexpected text after the end of the value");
  return node;
}

const INVISIBLE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Returns the same JSON with escapes for characters that are invisible or change the text direction.
export function escapeInvisible(text) {
  return text.replace(INVISIBLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function getMember(object, name) {
  return object.children.find(([text]) => JSON.parse(text) === name)?.[1];
}

export function compact(node) {
  return toText(node, "", "");
}

export function pretty(node) {
  return escapeInvisible(toText(node, " ", "\n"));
}

function toText(node, space, newline) {
  if (!node.children) return node.text;
  const isObject = node.kind === "object";
  const [start, end] = isObject ? "{}" : "[]";
  const deeper = newline && `${newline}  `;
  const parts = node.children.map(([name, child]) => deeper + (isObject ? `${name}:${space}` : "") + toText(child, space, deeper));
  return parts.length ? start + parts.join(",") + newline + end : start + end;
}
