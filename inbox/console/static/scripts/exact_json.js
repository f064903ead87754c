// Reads JSON without changing it: numbers and strings stay the text that they came as.

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const LITERAL = /true|false|null/y;

// As many as the service takes in one body.
export const DEEPEST = 32;

class NotJson extends Error {
  constructor(message, text, at) {
    const before = text.slice(0, at).split("\n");
    super(`Line ${before.length}, column ${before.at(-1).length + 1}: ${message}`);
  }
}

// {kind: "object", members: [[name as text, value]]}, {kind: "array", items}, or {kind: "string" | "number" | "literal", text}.
export function parse(text, deepest = 2 * DEEPEST) {
  const reader = new Reader(text, deepest);
  const value = reader.value(1);
  reader.skip(SPACE);
  if (reader.at < text.length) reader.fail("nothing may follow here");
  return value;
}

class Reader {
  constructor(text, deepest) {
    Object.assign(this, { text, deepest, at: 0 });
  }

  fail(message, at = this.at) {
    throw new NotJson(message, this.text, at);
  }

  skip(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? null;
    if (found !== null) this.at += found.length;
    return found;
  }

  peek() {
    this.skip(SPACE);
    return this.text[this.at];
  }

  value(depth) {
    const first = this.peek();
    if (first === undefined) this.fail("it ends too early");
    if (first === "{" || first === "[") {
      if (depth > this.deepest) this.fail(`more than ${this.deepest} levels deep`);
      this.at += 1;
      return first === "{" ? { kind: "object", members: this.members(depth) } : { kind: "array", items: this.items(depth) };
    }
    if (first === '"') return { kind: "string", text: this.string() };
    const literal = this.skip(LITERAL);
    if (literal) return { kind: "literal", text: literal };
    return { kind: "number", text: this.skip(NUMBER) ?? this.fail("a value is missing or misspelt") };
  }

  string() {
    return this.skip(STRING) ?? this.fail("this text has no end, or a character in it that has to be escaped");
  }

  members(depth) {
    const members = [];
    const names = new Set();
    if (this.ended("}")) return members;
    do {
      if (this.peek() !== '"') this.fail("a name in double quotes is missing");
      const begin = this.at;
      const name = this.string();
      if (names.has(JSON.parse(name))) this.fail(`the name ${name} comes twice`, begin);
      names.add(JSON.parse(name));
      if (this.peek() !== ":") this.fail("a colon is missing");
      this.at += 1;
      members.push([name, this.value(depth + 1)]);
    } while (this.goesOn("}"));
    return members;
  }

  items(depth) {
    const items = [];
    if (this.ended("]")) return items;
    do items.push(this.value(depth + 1));
    while (this.goesOn("]"));
    return items;
  }

  ended(end) {
    if (this.peek() !== end) return false;
    this.at += 1;
    return true;
  }

  goesOn(end) {
    if (this.ended(end)) return false;
    if (this.peek() !== ",") this.fail(`a comma or ${end} is missing`);
    this.at += 1;
    return true;
  }
}

const UNSEEN = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// The same JSON, with escapes for what cannot be seen, or would show the rest in another order than it has.
export function visible(text) {
  return text.replace(UNSEEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function member(object, name) {
  return object.members.find(([text]) => JSON.parse(text) === name)?.[1];
}

export function compact(node) {
  if (node.kind === "object") return `{${node.members.map(([name, value]) => `${name}:${compact(value)}`).join(",")}}`;
  if (node.kind === "array") return `[${node.items.map(compact).join(",")}]`;
  return node.text;
}

// For people to read.
export function pretty(node) {
  return visible(indented(node, ""));
}

function indented(node, indent) {
  const deeper = `${indent}  `;
  const parts = node.kind === "object"
    ? node.members.map(([name, value]) => `${deeper}${name}: ${indented(value, deeper)}`)
    : node.items?.map((item) => deeper + indented(item, deeper));
  if (!parts) return node.text;
  const [begin, end] = node.kind === "object" ? "{}" : "[]";
  return parts.length ? `${begin}\n${parts.join(",\n")}\n${indent}${end}` : begin + end;
}
