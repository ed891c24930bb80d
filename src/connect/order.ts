// An order of the daemon to `platform.cjs`, by which user data links a host to a platform: `check` looks whether it can be done, `write` writes the
// settings too. It comes on standard input, since it has a token; the answer is JSON on standard output.

import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import { parseJson } from '../base/json.ts'
import { Failure } from '../ctl/exit-codes.ts'
import type { HostWay } from '../outgoing/proxy.ts'
import { problemOfToken } from './inputs.ts'
import type { ConnectRequest } from './connect.ts'

export const LinkOrder = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 500 }),
    /** Empty for none. */
    token: Type.String({ maxLength: 1_000 }),
    /** The proxy of this host for the platform, with its login; empty for none. */
    proxy: Type.String({ maxLength: 4_096 }),
    /** Authorities that this host trusts beside those of the system, PEM. */
    authorities: Type.Array(Type.String()),
  },
  { additionalProperties: false },
)
export type LinkOrder = Static<typeof LinkOrder>

/**
 * Reads an order.
 * @param parseUrl of the platform
 * @throws Failure naming the field
 */
export function readOrder(
  text: string,
  parseUrl: (text: string) => string,
): { readonly request: ConnectRequest; readonly hostWay: HostWay } {
  const order = parseJson(text)
  if (!Check(LinkOrder, order))
    throw new Failure('usage', 'the order on standard input is not one of edgehostd')
  const { url, token, proxy, authorities } = order
  const problem = token === '' ? undefined : problemOfToken(token)
  if (problem !== undefined) throw new Failure('usage', `the token ${problem}`)
  return {
    request: { url: parseUrl(url), token },
    hostWay: { proxyFor: () => (proxy === '' ? undefined : proxy), authorities: () => authorities },
  }
}
