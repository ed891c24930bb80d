import { masked } from '../base/mask.ts'

/** The data that must not leave the host, and the names that may. */
export interface Secrets {
  /** Contents of files: keys, tokens. */
  readonly values: readonly Buffer[]
  /** Names of known accounts. All other names are masked: people type passwords as user names, and logs repeat them. */
  readonly userNames: ReadonlySet<string>
}

/** Replaces a name that no account has. */
const unknownUser = '(unknown user)'

// A shorter secret would be found in unrelated text.
const shortestSecret = 8

// The name of a secret, with the separator before its value.
const named = /((?:password|passphrase|secret|token|authorization|cookie)\\*["']?\s*[=:]\s*)/

/** Patterns of secrets, and the replacement of each. */
const shapes: readonly (readonly [RegExp, string])[] = [
  // RFC 7468.
  [/-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(-----END \1-----|$)/gs, `-----BEGIN $1----- ${masked}`],
  // JSON Web Tokens, RFC 7519: a header, which begins with {", and two more parts.
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, masked],
  // scheme://user:password@host, RFC 3986, 3.2.1.
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:)[^\s/@]+@/gi, `$1${masked}@`],
  // "password": "...", also in text that is quoted again; a path, a number and a mask are not secrets.
  [new RegExp(`${named.source}(\\\\*["'])(?!\\/|\\*)(?:(?!\\2)(?:\\\\.|.))+\\2`, 'gi'), `$1$2${masked}$2`],
  // RefreshToken=..., authorization: Bearer ...
  [
    new RegExp(
      `${named.source}(?!\\d+\\b|true\\b|false\\b|null\\b|not set\\b|\\/|\\*)(?:(?:Bearer|Basic) )?[^\\s,;{}[\\]"'\\\\]+`,
      'gi',
    ),
    `$1${masked}`,
  ],
]

/**
 * Replaces the secrets in a text: known values in any encoding, text that looks like a token, a private key or a password,
 * and user names that no account has.
 */
export function createMask({ values, userNames }: Secrets): (text: string) => string {
  const spelled = [...new Set(values.flatMap(spellings))].sort((one, two) => two.length - one.length)
  const nameOf = (name: string) => (name === '' || userNames.has(name.toLowerCase()) ? name : unknownUser)
  return (text) => {
    let rest = text
    for (const secret of spelled) rest = rest.replaceAll(secret, masked)
    for (const [shape, replacement] of shapes) rest = rest.replace(shape, replacement)
    return (
      rest
        // Lines of the daemon.
        .replace(/("user":)("(?:[^"\\]|\\.)*")/g, (_, key: string, value: string) => {
          return `${key}${JSON.stringify(nameOf(parseText(value)))}`
        })
        // Lines of PAM modules, which write the name at the end of the line, or in quotes.
        .replace(/(\buser=)([^\n]*)$/gm, (_, key: string, name: string) => `${key}${nameOf(name.trim())}`)
        .replace(/(\buser [`'"[(])([^\n]*?)(['"\])])/g, (_, key: string, name: string, end: string) => {
          return `${key}${nameOf(name)}${end}`
        })
    )
  }
}

/** The text of a JSON string; the text as it is where it is not valid JSON. */
function parseText(quoted: string): string {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return quoted
  }
}

/** The forms in which a value may occur: as it is, line by line (PEM), and encoded. */
function spellings(value: Buffer): string[] {
  const text = value.toString()
  const encoded = (['base64', 'base64url', 'hex'] as const).map((encoding) => value.toString(encoding))
  return [text, ...text.split('\n').map((line) => line.trim()), ...encoded].filter(
    (each) => each.length >= shortestSecret && !each.startsWith('-----'),
  )
}
