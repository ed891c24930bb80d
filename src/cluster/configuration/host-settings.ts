import { isIP } from 'node:net'
import { refusedField } from '../../errors/refused-field.ts'
import type { WantedSettings } from '../wanted.ts'
import { problemOfKey } from './ssh-key.ts'

interface Given {
  readonly ntpServers?: readonly string[]
  readonly sshKeys?: readonly string[]
}

const mostServers = 32
const mostKeys = 256
// A key of RSA with 16384 bits has some 2,800 characters.
const longestKey = 8_192

/**
 * Reads the settings of the host: without empty entries and repetitions. Pure.
 * @param path of both lists, with a dot at its end; empty where they are not within anything
 * @throws AppError BadRequest that names the entry
 */
export function readHostSettings({ ntpServers = [], sshKeys = [] }: Given, path: string): WantedSettings {
  return {
    ntpServers: read(ntpServers, `${path}ntpServers`, mostServers, problemOfServer),
    sshKeys: read(sshKeys, `${path}sshKeys`, mostKeys, (key) =>
      key.length > longestKey ? `is longer than ${longestKey} characters` : problemOfKey(key),
    ),
  }
}

function read(
  entries: readonly string[],
  field: string,
  most: number,
  problemOf: (entry: string) => string | undefined,
): readonly string[] {
  for (const [index, entry] of entries.entries()) {
    const problem = entry.trim() === '' ? undefined : problemOf(entry.trim())
    if (problem !== undefined) throw refusedField(`${field}[${index}]`, problem)
  }
  const all = [...new Set(entries.map((entry) => entry.trim()).filter(Boolean))]
  if (all.length > most) throw refusedField(field, `has ${all.length} entries; at most ${most} are possible`)
  return all
}

/** A name as of RFC 1123, or an address without a zone. */
function problemOfServer(text: string): string | undefined {
  // timesyncd.conf(5) separates servers by spaces, and each line of chrony.conf(5) may have options.
  if (/[\s\p{Cc}]/u.test(text))
    return 'contains a space or a line break: give each server as an entry of its own'
  if (isIP(text) !== 0 && !text.includes('%')) return undefined
  const isName =
    text.length <= 253 && text.split('.').every((label) => /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/i.test(label))
  // What consists of numbers only would be an address.
  return isName && !/^[\d.]+$/.test(text) ? undefined : 'is neither the name of a host nor an address'
}
