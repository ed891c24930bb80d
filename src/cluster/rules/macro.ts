/** One macro in a text, `[start, end)` with its braces. */
export interface Macro {
  readonly start: number
  readonly end: number
  /** `invalid`: it begins like a macro and does not go on like one. */
  readonly kind: 'var' | 'system' | 'pack' | 'macro' | 'invalid'
  /** What stands after the kind: `NAME`, `cluster.name`, `pack.path.to.value`. Of an invalid one nothing. */
  readonly name: string
}

// Longer than any path into values.
const nameLimit = 1_024

// Sticky, so that each looks at one place only; no two parts of one can take the same character, so none backtracks.
const beginning = /\{\{-?[ \t]*\.spectro(?![\w-])/y
const whole = /\{\{[ \t]*\.spectro\.(var|system|pack|macro)\.([^\s{}|]+)[ \t]*\}\}/y
const rest = /[^{}\r\n]*\}\}|[^\s{}]*/y

/**
 * The macros of a text in their order, in linear time: `{{ .spectro.<kind>.<name> }}`, spaces optional. All other braces
 * belong to Helm or to YAML and are no business of ours.
 */
export function findMacros(text: string): Macro[] {
  const macros: Macro[] = []
  let at = text.indexOf('{{')
  while (at !== -1) {
    const macro = readMacro(text, at)
    if (macro) macros.push(macro)
    at = text.indexOf('{{', macro?.end ?? at + 1)
  }
  return macros
}

function readMacro(text: string, start: number): Macro | undefined {
  whole.lastIndex = start
  const [, kind, name] = whole.exec(text) ?? []
  if (kind !== undefined && name !== undefined && name.length <= nameLimit)
    return { start, end: whole.lastIndex, kind: kind as Macro['kind'], name }
  beginning.lastIndex = start
  if (!beginning.test(text)) return undefined
  rest.lastIndex = beginning.lastIndex
  rest.test(text)
  return { start, end: Math.max(rest.lastIndex, beginning.lastIndex), kind: 'invalid', name: '' }
}

/** Whether a text holds `{{` outside of its macros: an action of somebody else's template. */
export function hasOtherBraces(text: string, macros: readonly Macro[]): boolean {
  let next = 0
  for (let at = text.indexOf('{{'); at !== -1; at = text.indexOf('{{', at)) {
    while ((macros[next]?.end ?? Infinity) <= at) next += 1
    const macro = macros[next]
    if (macro === undefined || at < macro.start) return true
    at = macro.end
  }
  return false
}

/** The text with each macro replaced by what `valueOf` says of it, or left where that is undefined. */
export function replaceMacros(
  text: string,
  macros: readonly Macro[],
  valueOf: (macro: Macro, index: number) => string | undefined,
): string {
  if (macros.length === 0) return text
  const parts: string[] = []
  let at = 0
  macros.forEach((macro, index) => {
    parts.push(text.slice(at, macro.start), valueOf(macro, index) ?? text.slice(macro.start, macro.end))
    at = macro.end
  })
  parts.push(text.slice(at))
  return parts.join('')
}

/** Marks that stand for macros while the text is read as YAML, each as long as its macro. */
export interface Masked {
  readonly text: string
  /** Puts something else in the place of each mark. */
  readonly unmask: (text: string, valueOf: (index: number) => string) => string
  /** Indices of the macros whose marks a text holds, in order. */
  readonly indicesIn: (text: string) => number[]
}

/**
 * A text in which each macro is one word of the same length, so that YAML reads it as part of a scalar and all places
 * stay where they are. The words are made of private-use characters that the text does not hold.
 */
export function maskMacros(text: string, macros: readonly Macro[]): Masked {
  if (macros.length === 0) return { text, unmask: (inside) => inside, indicesIn: () => [] }
  const [mark, padding] = unusedMarks(text)
  // The shortest macro, `{{.spectro`, has room for eight digits: more than a text of 512 MiB has macros.
  const words = new RegExp(`${mark}([0-9]+)${padding}+`, 'g')
  const masked = replaceMacros(text, macros, ({ start, end }, index) =>
    `${mark}${index}`.padEnd(end - start, padding),
  )
  return {
    text: masked,
    unmask: (inside, valueOf) => inside.replace(words, (_word, index: string) => valueOf(Number(index))),
    indicesIn: (inside) => Array.from(inside.matchAll(words), ([, index]) => Number(index)),
  }
}

function unusedMarks(text: string): [string, string] {
  const unused: string[] = []
  for (let code = 0xe000; code <= 0xf8ff && unused.length < 2; code += 1) {
    const mark = String.fromCharCode(code)
    if (!text.includes(mark)) unused.push(mark)
  }
  // A text that holds all 6,400 of them means none of them.
  const [first = '\uf8fe', second = '\uf8ff'] = unused
  return [first, second]
}
