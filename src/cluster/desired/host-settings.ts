import { isIP } from 'node:net'
import { readEntries } from '../../errors/refused-field.ts'
import { problemOfKey } from '../../host/public-key.ts'
import type { DesiredSettings } from './desired-state.ts'

interface Given {
  readonly ntpServers?: readonly string[]
  readonly sshKeys?: readonly string[]
}

export const mostServers = 32
const mostKeys = 256

/**
 * Reads the settings of the host: without empty entries and repetitions. Pure.
 * @param path of both lists, with a dot at its end; empty where they are not within anything
 * @throws AppError BadRequest that names the entry
 */
export function readHostSettings({ ntpServers = [], sshKeys = [] }: Given, path: string): DesiredSettings {
  return {
    ntpServers: readEntries(ntpServers, `${path}ntpServers`, mostServers, problemOfServer),
    sshKeys: readEntries(sshKeys, `${path}sshKeys`, mostKeys, problemOfKey),
  }
}

/** The fault of the name of a time server: it is a name as of RFC 1123, or an address without a zone. Continues the sentence that its field begins. */
export function problemOfServer(text: string): string | undefined {
  // timesyncd.conf(5) separates servers by spaces, and each line of chrony.conf(5) may have options.
  if (/[\s\p{Cc}]/u.test(text))
    return 'contains a space or a line break: give each server as an entry of its own'
  if (isIP(text) !== 0 && !text.includes('%')) return undefined
  const isName =
    text.length <= 253 && text.split('.').every((label) => /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/i.test(label))
  // A name of numbers only would be an address.
  return isName && !/^[\d.]+$/.test(text) ? undefined : 'is neither the name of a host nor an address'
}
