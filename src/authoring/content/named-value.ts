import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/text.ts'

/**
 * Splits a value such as `NAME=FILE` at the first equals sign.
 * @param place the option with its value
 * @param form of the value, for the message
 * @throws Failure
 */
export function splitNamed(place: string, value: string, form: string): { name: string; path: string } {
  const equals = value.indexOf('=')
  const [name, path] = [value.slice(0, Math.max(equals, 0)), value.slice(equals + 1)]
  if (name === '' || path === '') throw new Failure('usage', `${place} must be written as ${form}`)
  return { name, path }
}

const nameCharacters = 255
const badName = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]|(?:^|\/)\.{0,2}(?:\/|$)/u

/**
 * Names in a bundle are relative paths, since a reader may write a file by its name.
 * @param what the name is, for the message
 * @throws Failure
 */
export function checkName(place: string, what: string, name: string): void {
  if (name.length > nameCharacters)
    throw new Failure(
      'usage',
      `${place}: ${what} has ${name.length} characters; ${nameCharacters} are allowed`,
    )
  if (badName.test(name))
    throw new Failure(
      'usage',
      `${place}: ${what} ${oneLine(name)} must be a relative path without .., backslashes and control characters`,
    )
}

/**
 * The name of an entry in a layout, for tools that find entries by it. It is no name of an image, which would contain a
 * colon. A tag may not contain a plus, and Helm replaces it so.
 */
export const referenceOf = (name: string, version: string): string =>
  `${name.replaceAll('/', '-')}-${version.replaceAll('+', '_')}`
