import { stringify } from 'yaml'

/** Twelve characters that every encoding leaves as they are, and a value that each changes in its way. */
export const sensitiveSamples = ['Kx7Lm2Qp9Rt4', 'Ze"n\'t\\o <ü>%41\nLöw/+ & é?']

/** How programs of a cluster write a value, each by a way of its own, by the name of the form. */
export function writtenForms(value: string): Readonly<Record<string, string>> {
  const quoted = (text: string) => JSON.stringify(text)
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  // Which bytes stand before it decides how base64 writes it.
  const within = (before: string) => base64(`${before}${value}:rest`)
  return {
    plain: value,
    json: quoted(value),
    'json within json': quoted(quoted(value)),
    'an error within an error within an error': quoted(`b: ${quoted(`a: ${quoted(value)}`)}`),
    'json of Go': quoted(value).replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`),
    'json in ASCII': quoted(value).replace(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
    yaml: stringify({ value }, { lineWidth: 0 }),
    'yaml in single quotes': `'${value.replaceAll("'", "''")}'`,
    'the data of a Secret': base64(value),
    'base64 after one byte': within('u'),
    'base64 after two bytes': within('us'),
    'base64 after three bytes': within('use'),
    'base64 for URLs': Buffer.from(`user:${value}!`).toString('base64url'),
    'a path of a URL': encodeURIComponent(value),
    'a query of a URL': new URLSearchParams({ value }).toString(),
    'a URL in lower case': encodeURIComponent(value).replace(/%../g, (code) => code.toLowerCase()),
    'one line': value.replaceAll('\n', '; '),
  }
}

/** Pieces of a value that a text may not show, in any of its forms. */
export function piecesOf(value: string): readonly string[] {
  const core = (before: number) =>
    Buffer.from('x'.repeat(before) + value)
      .toString('base64')
      .slice(before + 2, -6)
  return [
    ...value.split('\n'),
    ...encodeURIComponent(value).split('%0A'),
    ...[0, 1, 2].map(core),
    ...value.split('\n').map((line) => JSON.stringify(line).slice(1, -1)),
  ].filter((piece) => piece.length > 5)
}
