import type { Expression, Reference } from './functions/value.ts'
import { parseAction, type Token, parseExpression, type Fault } from './expression.ts'

/** One macro in a text. */
export interface Macro {
  /** The text that its value replaces, `[start, end)`: its braces, and the blanks that its trim markers remove. */
  readonly start: number
  readonly end: number
  /** Offset of its opening braces. */
  readonly braces: number
  /** Its references, in the order of the text. */
  readonly references: readonly Reference[]
  /** If undefined, `fault` says why. */
  readonly expression: Expression | undefined
  readonly fault?: Fault
}

// Longer than any path into values.
const nameLimit = 1_024

// Sticky, so each matches at one offset only. No two adjacent parts match the same character, so none backtracks.
const beginning = /\{\{-?[ \t\r\n]*\.spectro(?![\w-])/y
const whole = /\{\{[ \t\r\n]*\.spectro\.(var|system|pack|macro)\.([^\s{}|]+)[ \t\r\n]*\}\}/y
const rest = /[^{}\r\n]*\}\}|[^\s{}]*/y
const blank = /[ \t\r\n]/

/**
 * The macros of a text in their order, in linear time: `{{ .spectro.<kind>.<name> }}`, also with functions, trim markers
 * and line breaks inside. All other braces belong to Helm or YAML and are ignored.
 */
export function findMacros(text: string): Macro[] {
  const macros: Macro[] = []
  // Braces that are far away from the next `.spectro` are skipped.
  let mention = text.indexOf('.spectro')
  let at = text.indexOf('{{')
  while (at !== -1 && mention !== -1) {
    if (mention < at) mention = text.indexOf('.spectro', at)
    const macro =
      mention === -1 || mention - at > nameLimit ? undefined : readMacro(text, at, macros.at(-1)?.end ?? 0)
    if (macro) macros.push(macro)
    at = text.indexOf('{{', macro?.end ?? at + 1)
  }
  return macros
}

function readMacro(text: string, braces: number, earlier: number): Macro | undefined {
  whole.lastIndex = braces
  const [, kind, name] = whole.exec(text) ?? []
  if (kind !== undefined && name !== undefined && name.length <= nameLimit) {
    const reference = { kind: kind as Reference['kind'], name }
    const expression = { kind: 'reference' as const, reference }
    return { start: braces, end: whole.lastIndex, braces, references: [reference], expression }
  }
  beginning.lastIndex = braces
  const isOurs = beginning.test(text)
  const action = parseAction(text, braces)
  const references = (action?.tokens ?? []).flatMap((token) =>
    token.kind === 'reference' ? [token.reference] : [],
  )
  if (action && references.length > 0) {
    const { trimsBefore, trimsAfter, tokens } = action
    let [start, end] = [braces, action.end]
    while (trimsBefore && start > earlier && blank.test(text[start - 1] ?? '')) start -= 1
    while (trimsAfter && end < text.length && blank.test(text[end] ?? '')) end += 1
    return { start, end, braces, references, ...judge(tokens, references, isOurs) }
  }
  if (!isOurs) return undefined
  beginning.lastIndex = braces
  beginning.test(text)
  rest.lastIndex = beginning.lastIndex
  rest.test(text)
  const end = Math.max(rest.lastIndex, beginning.lastIndex)
  return { start: braces, end, braces, references, expression: undefined, fault: notWhole }
}

const notWhole: Fault = {
  code: 'MacroInvalid',
  message: 'begins like a macro but is not one; write {{ .spectro.var.NAME }} or another kind',
}

const keywords = new Set(['if', 'else', 'range', 'with', 'define', 'block', 'template'])

/** An action that begins like a macro must be valid. Any other action with a reference is evaluated only if it is valid. */
function judge(
  tokens: readonly Token[],
  references: readonly Reference[],
  isOurs: boolean,
): Pick<Macro, 'expression' | 'fault'> {
  const [first] = tokens
  const isStatement = first?.kind === 'word' && keywords.has(first.name)
  const parsed = isStatement ? { fault: ofStatement } : parseExpression(tokens)
  if (isOurs || 'expression' in parsed) {
    const isAlone = 'expression' in parsed && parsed.expression.kind === 'reference'
    if (!isAlone && references.some(({ kind }) => kind === 'var'))
      return { expression: undefined, fault: ofVariable }
    return 'expression' in parsed ? parsed : { expression: undefined, fault: parsed.fault }
  }
  const message = `stays as it is written: it is inside an expression that ${parsed.fault.message}`
  return { expression: undefined, fault: { code: 'MacroUnevaluated', message } }
}

const ofStatement: Fault = { code: 'MacroInvalid', message: 'is a statement of a template' }
const ofVariable: Fault = {
  code: 'MacroInvalid',
  message:
    'applies functions to a variable of the profile, which is not possible; write {{ .spectro.var.NAME }} alone',
}

/** Whether a text contains actions of another template: `{{` outside its macros, or macros inside other actions. */
export function hasOtherBraces(text: string, macros: readonly Macro[]): boolean {
  if (macros.some(({ fault }) => fault?.code === 'MacroUnevaluated')) return true
  let next = 0
  for (let at = text.indexOf('{{'); at !== -1; at = text.indexOf('{{', at)) {
    while ((macros[next]?.end ?? Infinity) <= at) next += 1
    const macro = macros[next]
    if (macro === undefined || at < macro.start) return true
    at = macro.end
  }
  return false
}

/** The text with each macro replaced by its `valueOf`, or unchanged if that is undefined. */
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

/** A text in which marks replace macros while it is parsed as YAML. Each mark is as long as its macro. */
export interface Masked {
  readonly text: string
  /** Replaces each mark in a part of the text. */
  readonly unmask: (text: string, valueOf: (index: number) => string) => string
  /** Indices of the macros whose marks a part of the text contains, in order. */
  readonly indicesIn: (text: string) => number[]
}

/**
 * Replaces each macro by one word of the same length, so that YAML reads it as part of a scalar and no offset changes.
 * The words consist of private-use characters that the text does not contain.
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
  // In a text that contains all 6,400 private-use characters, none of them has a meaning.
  const [first = '\uf8fe', second = '\uf8ff'] = unused
  return [first, second]
}
