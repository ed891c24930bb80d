import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'
import { readBody } from './read-body.ts'

/** The public keys of a file, a line each, without comments. @throws Failure usage, without anything of the file */
export function readKeys(file: string): string[] {
  const text = readBody(file, '--ssh-key').toString()
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text))
    throw new Failure(
      'usage',
      `--ssh-key: ${printable(file)} has a private key, which stays where it is; give the public one, ${printable(file)}.pub`,
    )
  const keys = text
    .split(/\r?\n/)
    .map((each) => each.trim())
    .filter((each) => each !== '' && !each.startsWith('#'))
  if (keys.length === 0) throw new Failure('usage', `--ssh-key: ${printable(file)} has no key`)
  return keys
}

/** A public key by its type and comment; without a comment by its end, in which keys differ. */
export function shortKey(key: string): string {
  const [type = '', material = '', ...comment] = key.trim().split(/\s+/)
  return `${type} ${comment.length > 0 ? comment.join(' ') : `...${material.slice(-16)}`}`
}
