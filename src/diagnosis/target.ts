// What a user names as the end of a connection: an address or a name, also with a port, or a URL. Pure.

import { isIP } from 'node:net'
import { refusedField } from '../errors/refused-field.ts'

export interface Target {
  /** A name, or an address without brackets; a link-local one may have a zone (RFC 4007, 11): `fe80::1%eth0`. */
  readonly host: string
  readonly port?: number
  /** Of a URL. */
  readonly scheme?: 'http' | 'https'
}

// RFC 1123, 2.1, and the underscore, which names of services have.
const label = '[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
const name = new RegExp(`^(?=.{1,253}\\.?$)${label}(\\.${label})*\\.?$`)
const zone = /^%[A-Za-z0-9_.-]{1,15}$/

/**
 * Parses a target.
 * @param field of the request, for the refusal
 * @throws AppError BadRequest
 */
export function parseTarget(text: string, field: string): Target {
  const [, scheme, rest = ''] = /^(?:(https?):\/\/)?([^/?#@\s]+)\/?$/i.exec(text) ?? []
  const [, bracketed, plain = '', portText] =
    /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(rest) ?? (isHostAddress(rest) ? [rest, rest] : [])
  const host = bracketed ?? plain
  if (host === '' || (bracketed === undefined ? !isHost(plain) : !isHostAddress(bracketed)))
    throw refusedField(
      field,
      'must be an address or a name, also with :PORT; for example 192.0.2.1 or registry.example:443',
    )
  const port = portText === undefined ? undefined : Number(portText)
  if (port !== undefined && (port < 1 || port > 65_535))
    throw refusedField(field, 'has a port that is not 1 to 65535')
  return {
    host,
    ...(port === undefined ? {} : { port }),
    ...(scheme === undefined ? {} : { scheme: scheme.toLowerCase() as 'http' | 'https' }),
  }
}

/** An address; a link-local one may have a zone. */
export const isHostAddress = (text: string): boolean => {
  const at = text.indexOf('%')
  return at === -1 ? isIP(text) !== 0 : isIP(text.slice(0, at)) === 6 && zone.test(text.slice(at))
}

/** A name of digits alone would be read as an address by the C library. */
const isHost = (text: string): boolean =>
  isHostAddress(text) || (name.test(text) && !/(^|\.)\d+\.?$/.test(text))

/** Family of an address. */
export const familyOf = (address: string): 4 | 6 => (address.includes(':') ? 6 : 4)
