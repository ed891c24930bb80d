import { masked, maskShapes } from '../base/mask.ts'

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
    rest = maskShapes(rest)
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
