// Parses JSON without changing it: numbers and strings keep the text they came as. JavaScript would round large numbers.

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const LITERAL = /true|false|null/y;

// The API's limit for a request body.
export const MAX_DEPTH = 32;

class JsonSyntaxError extends Error {
  constructor(message, text, position) {
    const before = text.slice(0, position).split("\n");
    super(`Line ${before.length}, column ${before.at(-1).length + 1}: ${message}.`);
  }
}

// Returns {kind: "object", members: [[name as JSON text, node]]}, {kind: "array", items: [node]}, or
// {kind: "string" | "number" | "literal", text}.
export function parseExact(text, maxDepth = 2 * MAX_DEPTH) {
  const parser = new Parser(text, maxDepth);
  const node = parser.value(1);
  parser.match(SPACE);
  if (parser.position < text.length) parser.fail("unexpected text after the end of the value");
  return node;
}

class Parser {
  constructor(text, maxDepth) {
    Object.assign(this, { text, maxDepth, position: 0 });
  }

  fail(message, position = this.position) {
    throw new JsonSyntaxError(message, this.text, position);
  }

  match(pattern) {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text)?.[0] ?? null;
    if (found !== null) this.position += found.length;
    return found;
  }

  peek() {
    this.match(SPACE);
    return this.text[this.position];
  }

  value(depth) {
    const first = this.peek();
    if (first === undefined) this.fail("unexpected end");
    if (first === "{" || first === "[") {
      if (depth > this.maxDepth) this.fail(`nested more than ${this.maxDepth} levels deep`);
      this.position += 1;
      return first === "{" ? { kind: "object", members: this.members(depth) } : { kind: "array", items: this.items(depth) };
    }
    if (first === '"') return { kind: "string", text: this.string() };
    const literal = this.match(LITERAL);
    if (literal) return { kind: "literal", text: literal };
    return { kind: "number", text: this.match(NUMBER) ?? this.fail("expected a value") };
  }

  string() {
    return this.match(STRING) ?? this.fail("unterminated string, or a character in it that must be escaped");
  }

  members(depth) {
    const members = [];
    const names = new Set();
    if (this.skip("}")) return members;
    do {
      if (this.peek() !== '"') this.fail("expected a name in double quotes");
      const start = this.position;
      const name = this.string();
      if (names.has(JSON.parse(name))) this.fail(`duplicate name ${name}`, start);
      names.add(JSON.parse(name));
      if (!this.skip(":")) this.fail("expected a colon");
      members.push([name, this.value(depth + 1)]);
    } while (this.hasNext("}"));
    return members;
  }

  items(depth) {
    const items = [];
    if (this.skip("]")) return items;
    do items.push(this.value(depth + 1));
    while (this.hasNext("]"));
    return items;
  }

  skip(character) {
    if (this.peek() !== character) return false;
    this.position += 1;
    return true;
  }

  hasNext(end) {
    if (this.skip(end)) return false;
    if (!this.skip(",")) this.fail(`expected a comma or ${end}`);
    return true;
  }
}

const INVISIBLE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Returns the same JSON with escapes for characters that are invisible or change the text direction.
export function escapeInvisible(text) {
  return text.replace(INVISIBLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function member(object, name) {
  return object.members.find(([text]) => JSON.parse(text) === name)?.[1];
}

export function compact(node) {
  if (node.kind === "object") return `{${node.members.map(([name, value]) => `${name}:${compact(value)}`).join(",")}}`;
  if (node.kind === "array") return `[${node.items.map(compact).join(",")}]`;
  return node.text;
}

export function pretty(node) {
  return escapeInvisible(indented(node, ""));
}

function indented(node, indent) {
  const deeper = `${indent}  `;
  const parts = node.kind === "object"
    ? node.members.map(([name, value]) => `${deeper}${name}: ${indented(value, deeper)}`)
    : node.items?.map((item) => deeper + indented(item, deeper));
  if (!parts) return node.text;
  const [start, end] = node.kind === "object" ? "{}" : "[]";
  return parts.length ? `${start}\n${parts.join(",\n")}\n${indent}${end}` : start + end;
}
