// Proxies of outgoing calls, as the variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY name them: what a proxy may be, and which calls need none. The
// rules are the ones of the programs that get the same values, golang.org/x/net/http/httpproxy. Nothing here reads or writes.

import { isIP } from 'node:net'
import { canonicalAddress, isLoopback } from '../base/address.ts'
import { isMask, masked } from '../base/mask.ts'
import { isInSubnet, parseSubnet } from '../base/subnet.ts'

/** What the host says of all outgoing calls of the daemon; asked for at each connection. */
export interface HostWay {
  /** `http://` or `https://` URL of the proxy for a server, perhaps with a login; undefined for none. */
  proxyFor(url: string): string | undefined
  /** Authorities that the host trusts beside those that the system had when this process began, PEM. */
  authorities(): readonly string[]
}

/** A proxy as a user has given it. */
export interface ParsedProxy {
  /** In one spelling: of letters, digits and `-._~%:@/[]` alone, so that it can be written into any file. */
  readonly url: string
  /** The same with a mask in place of the password. */
  readonly shown: string
  /** The password is a mask: the one that is stored is meant. */
  readonly isMasked: boolean
}

const longestUrl = 2_048
const longestNoProxy = 8_192

/**
 * Parses a proxy.
 * @throws Error whose message continues the sentence that the name of the field begins; it has no part of the URL
 */
export function parseProxy(text: string): ParsedProxy {
  if (text.length > longestUrl) throw new Error(`is longer than ${longestUrl} characters`)
  // The parser of URLs would leave out line ends.
  if (/[\s\p{Cc}]/u.test(text)) throw new Error('has white space or a control character; remove it')
  if (!/^https?:\/\//i.test(text))
    throw new Error('has to begin with http:// or https://, as in http://USER:PASSWORD@proxy.example:3128')
  if (!URL.canParse(text))
    throw new Error(
      'is not a URL: the port is a number up to 65535, and /, # and ? of a password are written as %2F, %23 and %3F',
    )
  const { protocol, username, password, hostname, host, pathname, search, hash } = new URL(text)
  if (pathname !== '/' || search !== '' || hash !== '')
    throw new Error(
      'has a path, a query or a fragment; only scheme, login, host and port are possible, and /, # and ? of a password are written as %2F, %23 and %3F',
    )
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(hostname))
    throw new Error('has a host that is neither a name nor an address')
  const [user, secret] = [decoded(username), decoded(password)]
  if (user === '' && secret !== '') throw new Error('has a password without a user')
  const spelled = (shownSecret: string) =>
    `${protocol}//${user === '' ? '' : `${encoded(user)}${secret === '' ? '' : `:${shownSecret}`}@`}${host}`
  return {
    url: spelled(encoded(secret)),
    shown: spelled(masked),
    isMasked: secret !== '' && isMask(secret),
  }
}

function decoded(part: string): string {
  let text: string
  try {
    text = decodeURIComponent(part)
  } catch {
    throw new Error('has a % without two hexadecimal digits in its login; a % itself is written as %25')
  }
  if (/\p{Cc}/u.test(text)) throw new Error('has a control character in its login')
  return text
}

const encoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** The login of a proxy for `Proxy-Authorization`, RFC 7617; undefined for none. */
export function proxyLogin(proxy: string): string | undefined {
  const { username, password } = new URL(proxy)
  if (username === '') return undefined
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(login).toString('base64')}`
}

/** A proxy in messages: without its login. */
export function proxyShown(proxy: string): string {
  const { username, protocol, host } = new URL(proxy)
  return username === '' ? proxy : `${protocol}//${host}`
}

const name = /^(?:\*?\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*\.?$/i

/**
 * Parses a list of exemptions: names, with a dot before for what is below it alone, addresses, networks, each but a network also with a port; `*` for
 * everything.
 * @throws Error whose message continues the sentence that the name of the field begins
 */
export function parseNoProxy(text: string): readonly string[] {
  if (text.length > longestNoProxy) throw new Error(`is longer than ${longestNoProxy} characters`)
  const entries = text.split(/[\s,]+/).filter(Boolean)
  for (const entry of entries) {
    const { host } = withoutPort(entry)
    if (entry === '*' || isIP(host) !== 0 || parseSubnet(entry) !== undefined) continue
    if (name.test(host) && !/^[\d.]+$/.test(host)) continue
    throw new Error(
      `has ${JSON.stringify(entry)}, which is neither a name, an address, nor a network as 192.0.2.0/24; separate entries by commas`,
    )
  }
  return [...new Set(entries)]
}

/** Host and port of an entry or of a URL; a port of an IPv6 address stands behind brackets. */
function withoutPort(entry: string): { readonly host: string; readonly port: string } {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(entry)
  if (bracketed) return { host: bracketed[1] ?? '', port: bracketed[2] ?? '' }
  const [, host = entry, port = ''] = isIP(entry) === 0 ? (/^([^:]+):(\d{1,5})$/.exec(entry) ?? []) : []
  return { host, port }
}

/** Whether a call of this URL needs no proxy. Loopback never does. */
export function isExempt(url: string, exemptions: readonly string[]): boolean {
  const { protocol, hostname, port: given } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const isAddress = isIP(host) !== 0
  if (host === 'localhost' || (isAddress && isLoopback(canonicalAddress(host)))) return true
  const port = given || (protocol === 'http:' ? '80' : '443')
  return exemptions.some((entry) => {
    if (entry === '*') return true
    const subnet = parseSubnet(entry)
    if (subnet) return isAddress && isInSubnet(host, subnet)
    const each = withoutPort(entry.toLowerCase())
    if (each.port !== '' && each.port !== port) return false
    if (isAddress || isIP(each.host) !== 0)
      return isAddress && isIP(each.host) !== 0 && canonicalAddress(each.host) === canonicalAddress(host)
    const suffix = each.host.replace(/^\*/, '').replace(/\.$/, '')
    return suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`)
  })
}
