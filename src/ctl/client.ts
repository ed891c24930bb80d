import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Static } from 'typebox'
import { program } from '../base/program.ts'
import type { ListMeta } from '../lists/page.ts'
import { Failure, type ExitName } from './exit-codes.ts'
import { foreignReply, parseBody, readReply, toFailure, understand, type Reply } from './reply.ts'
import { createSessions, type Session, type SessionProtocol, type Sessions } from './session.ts'
import { oneLine } from './layout.ts'
import type { Ask, Transport } from './transport.ts'
import type { CommandLine } from './command.ts'
import type { Output } from './output.ts'
import type { Target } from './target.ts'
import type { Terminal } from './terminal.ts'

/** Items of a list, of all its pages. */
export interface Items<Item> {
  readonly items: readonly Item[]
  readonly listmeta: Static<typeof ListMeta>
}

/** The API of a host, as a logged-in user. */
export interface Client {
  /**
   * The body of a successful reply; any other reply is a Failure.
   * @param fields names that the body must have
   */
  get<T extends object>(path: string, fields: readonly (keyof T & string)[], timeoutMs?: number): Promise<T>
  /**
   * @param limit 0 for all items
   * @param fields names that the last page must have beside its items
   */
  list<Item, Beside extends object = object>(
    path: string,
    query: Readonly<Record<string, string>>,
    limit: number,
    fields?: readonly (keyof Beside & string)[],
  ): Promise<Items<Item> & Beside>
  /** The whole reply, whatever its status. */
  ask(ask: Ask): Promise<Reply>
  /** The reply before its body has arrived, whatever its status. */
  open(ask: Ask): Promise<IncomingMessage>
  /** Sends a change; a reply that is not successful is a Failure. */
  change(method: string, path: string, body?: unknown): Promise<Reply>
  /** Sends a request without a session, for logins. */
  askPlain(
    method: string,
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Reply>
}

interface ClientOptions {
  readonly target: Target
  readonly transport: Transport
  /** From `--user`: the session must be of this account. */
  readonly user: string | undefined
  readonly protocol: SessionProtocol
}

/** A reply of GET; undefined where its resource is not there (404). @throws Failure */
export async function getIfThere<T extends object>(
  client: Pick<Client, 'ask'>,
  path: string,
  fields: readonly (keyof T & string)[],
): Promise<T | undefined> {
  const reply = await client.ask({ method: 'GET', path })
  if (reply.status === 404) return undefined
  if (reply.status !== 200) throw toFailure(reply)
  return parseBody<T>(reply, fields)
}

const pageSize = 50
// A list of many pages reaches the rate limit of the host and has to wait.
const longestWaitSeconds = 30

export function createClient({ target, transport, user, protocol }: ClientOptions): Client {
  const sessions = target.kind === 'host' ? createSessions(target, protocol) : undefined

  const askPlain: Client['askPlain'] = async (method, path, body, headers) => {
    const json = body === undefined ? {} : jsonBody(Buffer.from(JSON.stringify(body)))
    return readReply(await transport.send({ method, path, ...(headers ? { headers } : {}), ...json }))
  }

  const withToken = (ask: Ask, session: Session | undefined): Ask =>
    session ? { ...ask, headers: { ...ask.headers, ...protocol.headers(session) } } : ask

  async function renewInTime(session: Session | undefined): Promise<Session | undefined> {
    if (!session || !sessions || !protocol.isDue(session, Date.now())) return session
    const renewed = await sessions.renew(session, askPlain)
    if (!renewed && target.kind === 'host') throw new Failure('notLoggedIn', notLoggedInOn(target.name))
    return renewed
  }

  async function open(ask: Ask): Promise<IncomingMessage> {
    const session = await renewInTime(readSession(target, sessions, user))
    const message = await transport.send(withToken(ask, session))
    if (message.statusCode !== 401 || !session || !sessions) return message
    const refusal = await readReply(message)
    const renewed = await sessions.renew(session, askPlain)
    if (!renewed) throw notLoggedIn(target, toFailure(refusal))
    return transport.send(withToken(ask, renewed))
  }

  const ask = async (question: Ask) => readReply(await open(question))

  async function askPatiently(question: Ask): Promise<Reply> {
    for (;;) {
      const reply = await ask(question)
      const seconds = Number(reply.headers['retry-after'])
      if (reply.status !== 429 || !(seconds <= longestWaitSeconds)) return reply
      await sleep(Math.max(1, seconds) * 1_000)
    }
  }

  async function succeed(question: Ask): Promise<Reply> {
    const reply = await askPatiently(question)
    if (reply.status < 200 || reply.status > 299) throw refusalOf(target, reply)
    return reply
  }

  const get: Client['get'] = async <T extends object>(
    path: string,
    fields: readonly (keyof T & string)[],
    timeoutMs?: number,
  ) => {
    const reply = await succeed({ method: 'GET', path, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    return parseBody<T>(reply, fields)
  }

  return {
    get,
    async list<Item, Beside extends object = object>(
      path: string,
      query: Readonly<Record<string, string>>,
      limit: number,
      fields: readonly (keyof Beside & string)[] = [],
    ): Promise<Items<Item> & Beside> {
      const items: Item[] = []
      let token = ''
      for (;;) {
        const wanted = limit === 0 ? pageSize : Math.min(pageSize, limit - items.length)
        const parameters = { ...query, limit: String(wanted), ...(token === '' ? {} : { continue: token }) }
        const page = await get<Items<Item> & Beside>(
          `${path}?${new URLSearchParams(parameters).toString()}`,
          ['items', 'listmeta', ...fields],
        )
        understand(() => items.push(...page.items))
        token = page.listmeta.continue
        if (typeof token !== 'string') throw foreignReply('its listmeta has no continue')
        if (token === '' || (limit > 0 && items.length >= limit)) {
          const beside = Object.fromEntries(fields.map((name) => [name, page[name]])) as Beside
          return { items, listmeta: { ...page.listmeta, limit: items.length }, ...beside }
        }
      }
    },
    ask,
    open,
    change: (method, path, body) =>
      succeed({ method, path, ...(body === undefined ? {} : jsonBody(Buffer.from(JSON.stringify(body)))) }),
    askPlain,
  }
}

/** A JSON body and its header. */
export const jsonBody = (body: Buffer) => ({ body, headers: { 'content-type': 'application/json' } })

function readSession(
  target: Target,
  sessions: Sessions | undefined,
  user: string | undefined,
): Session | undefined {
  const session = sessions?.read()
  if (target.kind === 'host' && session && user !== undefined && session.user !== user)
    throw new Failure(
      'notLoggedIn',
      `the session on ${target.name} belongs to ${oneLine(session.user)}, not to ${oneLine(user)}; log in: ${program.ctl} --host ${target.name} login ${oneLine(user)}`,
    )
  return session
}

/** @param refusal of the host; returned unchanged on the local socket */
export function notLoggedIn(target: Target, refusal: Failure): Failure {
  if (target.kind === 'socket') return refusal
  return new Failure('notLoggedIn', notLoggedInOn(target.name))
}

/** The failure for a refusal of the host; without a session it names the command of the login. */
export const refusalOf = (target: Target, reply: Reply): Failure =>
  reply.status === 401 ? notLoggedIn(target, toFailure(reply)) : toFailure(reply)

const notLoggedInOn = (name: string) => `not logged in on ${name}: ${program.ctl} --host ${name} login`

const everyMs = 300_000

/**
 * Keeps a session alive during a long request: it ends some time after its last renewal, two hours by default, and with it a
 * request that lasts longer. A refused token is renewed by the client.
 * @returns ends it
 */
export function keepSession(client: Pick<Client, 'ask'>, ms = everyMs): () => void {
  const ask = () => void client.ask({ method: 'GET', path: '/v1/users/current' }).catch(() => undefined)
  const timer = setInterval(ask, ms)
  return () => clearInterval(timer)
}

/** The objects that the program of a command on a host uses. `Name`: the options that it reads beside the global ones. */
export interface Context<Name extends string = never> {
  readonly line: CommandLine<Name>
  readonly client: Client
  readonly output: Output
  readonly target: Target
  readonly terminal: Terminal
  readonly protocol: SessionProtocol
  /** The folder of the keys of hosts and of the tokens. */
  readonly folder: () => string
}

/** Runs a command on a host. Returns its exit status; `undefined` means `ok`. */
export type HostProgram<Name extends string = never> = (
  context: Context<Name>,
) => Promise<ExitName | undefined>
