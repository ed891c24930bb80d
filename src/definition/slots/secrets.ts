import { isMask, masked } from '../../base/mask.ts'
import type { Profile, Variable } from '../definition.ts'

// A shorter one would be found in anything.
const shortestSecret = 4
// One line of several; they hold words of a format too.
const shortestLine = 8
// The search for a text takes time that grows with its length; one that begins like it is worth a closer look.
const headLength = 64
// Comparisons of characters at worst, for one definition: seconds, if it was made to take them.
const workLimit = 10_000_000_000

/** Texts of a sensitive variable that may be its value. One of the options may be the secret. */
function secretsOf({ isSensitive, defaultValue = '', options = [] }: Variable): string[] {
  return isSensitive === true ? [defaultValue, ...options.map(({ value }) => value)] : []
}

/**
 * Masks the secrets of all profiles where they stand in a text: as they are, line by line, as JSON and YAML quote them,
 * and in base64. Secrets of less than 4 characters are left. Texts that would take too long to search, all together, are
 * masked as a whole.
 */
export function createHide(profiles: readonly Profile[]): (text: string) => string {
  const secrets = profiles.flatMap(({ variables }) => variables.flatMap(secretsOf))
  // What holds another one goes first, else the rest of it would stay.
  const spelled = [...new Set(secrets.flatMap(spellings))].sort((one, two) => two.length - one.length)
  const work = { left: workLimit }
  return (text) => {
    let rest = text
    for (const secret of spelled) {
      if (work.left < 0) break
      rest = maskOne(rest, secret, work)
    }
    return work.left < 0 && text !== '' ? masked : rest
  }
}

/** Masks a secret wherever it stands; stops, with no work left, when that takes too long. */
function maskOne(text: string, secret: string, work: { left: number }): string {
  const head = secret.slice(0, headLength)
  work.left -= text.length * head.length
  const parts: string[] = []
  let from = 0
  let at = text.indexOf(head)
  while (at !== -1 && work.left >= 0) {
    work.left -= secret.length
    // Far faster than startsWith where both are long.
    const isWhole = text.slice(at, at + secret.length) === secret
    if (isWhole) {
      parts.push(text.slice(from, at), masked)
      from = at + secret.length
    }
    at = text.indexOf(head, isWhole ? from : at + 1)
  }
  return parts.length === 0 ? text : parts.join('') + text.slice(from)
}

function spellings(value: string): string[] {
  const text = value.trim()
  // What is nothing but a mask says nothing, and would be masked again and again.
  if (text.length < shortestSecret || isMask(text)) return []
  const lines = text.split('\n').map((line) => line.trim())
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    text.replaceAll("'", "''"),
    Buffer.from(value).toString('base64'),
    // The frame of a PEM is no secret.
    ...lines.filter((line) => line.length >= shortestLine && !line.startsWith('-----')),
  ]
}
