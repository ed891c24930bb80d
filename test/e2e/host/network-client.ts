import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import type { NetworkHost } from './network-host.ts'

/** What the replies of these tests have. */
export interface AnyReply {
  readonly uid: string
  readonly state: string
  readonly reason?: string
  readonly message?: string
  readonly items: readonly { readonly uid: string; readonly creationTimestamp: string }[]
  readonly Token: { readonly Authorization: string }
}

export interface Answer {
  /** 0 where none came. */
  readonly status: number
  readonly json: AnyReply
}

/** The neighbour of a host as a client of its API: each request is on a connection of its own. */
export interface NetworkClient {
  /** @param address of the host */
  ask(address: string, method: string, target: string, body?: unknown): Promise<Answer>
  login(address: string, username: string, password: string): Promise<void>
  /** Of the last login. */
  token(): string
  change(uid: string, address: string): Promise<AnyReply>
  isState(uid: string, state: string, address: string, timeoutMs?: number): Promise<void>
}

export const networkPath = '/v1/edge-mgmt/network'

/** @param answerSeconds how long it waits for an answer */
export function clientOf(network: NetworkHost, answerSeconds = 10): NetworkClient {
  let token = ''
  const client: NetworkClient = {
    async ask(address, method, target, body) {
      const { stdout, exitCode } = await network.neighbour(
        ...['curl', '--silent', '--insecure', '--max-time', String(answerSeconds), '--request', method],
        ...['--header', `Authorization: ${token}`, '--write-out', '\n%{http_code}'],
        ...(body === undefined ? [] : ['--json', JSON.stringify(body)]),
        `https://${address}:5080${target}`,
      )
      const [text = '', status = '0'] = stdout.split(/\n(?=\d+$)/)
      return {
        status: exitCode === 0 ? Number(status) : 0,
        json: (text === '' ? {} : JSON.parse(text)) as AnyReply,
      }
    },
    async login(address, username, password) {
      const reply = await client.ask(address, 'POST', '/v1/users/default/login', { username, password })
      expect(reply, 'login').toMatchObject({ status: 200 })
      token = reply.json.Token.Authorization
    },
    token: () => token,
    change: async (uid, address) => (await client.ask(address, 'GET', `${networkPath}/changes/${uid}`)).json,
    isState: (uid, state, address, timeoutMs = 30_000) =>
      eventually(async () => expect(await client.change(uid, address)).toMatchObject({ state }), timeoutMs),
  }
  return client
}
