import type { ValueKind } from './formats.ts'

/** What a text is when it stands in YAML without quotes, for readers of 1.2 and of 1.1: Kubernetes and Helm read 1.1. */
export type PlainKind = ValueKind | 'null'

const nulls = /^(?:~|null|Null|NULL|)$/
const booleans = /^(?:true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|y|Y|n|N)$/
// https://yaml.org/spec/1.2.2/#1032-tag-resolution and https://yaml.org/type/ (int and float of 1.1: `_`, base 2 and 60).
const numbers = [
  /^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?$/,
  /^[-+]?0(?:x[0-9a-fA-F_]+|o[0-7_]+|b[01_]+)$/,
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/,
  /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
]

/** How plain text is read. A text that is a number, boolean or null in either version of YAML counts as that. */
export function plainKind(text: string): PlainKind {
  if (nulls.test(text)) return 'null'
  if (booleans.test(text)) return 'boolean'
  return text.length < 400 && numbers.some((each) => each.test(text)) ? 'number' : 'text'
}

/** Why a text cannot stand in YAML without quotes, or undefined. `isInFlow`: inside of [] or {}. */
export function refusePlain(text: string, isInFlow: boolean): string | undefined {
  if (/[\r\n]/.test(text)) return 'a line break'
  if (/^\s|\s$/.test(text)) return 'a space at its begin or end'
  if (/:(?:\s|$)/.test(text)) return 'a colon before a space or the end'
  if (/\s#/.test(text)) return 'a space before #'
  if (/^(?:[-?:](?:\s|$)|[,[\]{}#&*!|>'"%@`])/.test(text))
    return 'a character at its begin that has a meaning in YAML'
  if (isInFlow && /[,[\]{}]/.test(text)) return 'a comma or bracket, inside of brackets'
  return undefined
}
