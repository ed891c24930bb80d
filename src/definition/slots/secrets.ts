import { encodingsOf } from './encodings.ts'
import { isMask, masked } from '../../base/mask.ts'
import type { Profile, Variable } from '../definition.ts'

// A shorter secret would match almost any text.
const shortestSecret = 4
// For one line of a secret of several lines; such lines may also be keywords of a format.
const shortestLine = 8
// A search takes time that grows with the length of the secret, so only its first characters are searched for. Where they
// match, the whole secret is compared.
const headLength = 64
// Comparisons of characters at worst, for one definition: seconds, if an author tries to make it slow.
const workLimit = 10_000_000_000

/** Texts of a sensitive variable that may be its value: the default and the options. */
function secretsOf({ isSensitive, defaultValue = '', options = [] }: Variable): string[] {
  return isSensitive === true ? [defaultValue, ...options.map(({ value }) => value)] : []
}

/**
 * Masks the secrets of all profiles where they occur in a text: as they are, line by line, as JSON and YAML quote them,
 * and in base64. Secrets of less than 4 characters are not masked. When the searches have taken too long in total, the
 * remaining texts are masked as a whole.
 */
export const createHide = (profiles: readonly Profile[]): ((text: string) => string) =>
  createHideSpelled(longestFirst(secretsIn(profiles).flatMap(spellings)))

/** The secrets of profiles. */
export const secretsIn = (profiles: readonly Profile[]): readonly string[] =>
  profiles.flatMap(({ variables }) => variables.flatMap(secretsOf))

// The spellings of some dozen secrets take a millisecond. The logs call `createHideOf` for each of thousands of lines, so that each has the whole
// limit of work.
const spelledOf = new WeakMap<readonly string[], readonly string[]>()

/**
 * Masks secrets where they occur in a text of programs, as `createHide` does, and also in the other forms that programs write.
 * @param secrets a list that does not change
 */
export function createHideOf(secrets: readonly string[]): (text: string) => string {
  const known = spelledOf.get(secrets)
  if (known) return createHideSpelled(known)
  const spelled = longestFirst(
    secrets.filter(isSecret).flatMap((each) => [...spellings(each), ...encodingsOf(each)]),
  )
  spelledOf.set(secrets, spelled)
  return createHideSpelled(spelled)
}

/** If a secret contains another one, the rest of it would otherwise stay visible. */
const longestFirst = (spellings: readonly string[]): readonly string[] =>
  [...new Set(spellings)].sort((one, two) => two.length - one.length)

function createHideSpelled(spelled: readonly string[]): (text: string) => string {
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

/** Masks a secret wherever it occurs; stops when no work is left. */
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

// A mask is no secret, and replacing a mask by a mask would be repeated for every secret.
const isSecret = (value: string) => value.trim().length >= shortestSecret && !isMask(value.trim())

function spellings(value: string): string[] {
  if (!isSecret(value)) return []
  const text = value.trim()
  const lines = text.split('\n').map((line) => line.trim())
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    text.replaceAll("'", "''"),
    Buffer.from(value).toString('base64'),
    // The BEGIN and END lines of a PEM file are no secret.
    ...lines.filter((line) => line.length >= shortestLine && !line.startsWith('-----')),
  ]
}
