// The session of the pages: the access token in the memory of the page, the refresh token in the storage of the tab, nothing in cookies. All tabs
// of one browser share one session: a second use of an old refresh token would end it, so one tab renews at a time, and tells the others. The
// requests for it are those of a program (`SessionProtocol`).
import { computed, signal } from '@preact/signals'
import {
  forgetRead,
  hostNow,
  jsonOf,
  open,
  refusalOf,
  RequestError,
  send,
  useCredentials,
  type RequestOptions,
} from './request.ts'

export interface Pair {
  readonly Authorization: string
  readonly RefreshToken: string
}

/** Roles, each with the rights of those before it; a host has no operators. */
const ranks = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ranks)[number]

export interface User {
  readonly userName: string
  readonly role: Role
}

/** A request with its path. */
export interface SessionRequest extends RequestOptions {
  readonly path: string
}

/** How a session begins, goes on and ends in the API of a program. */
export interface SessionProtocol {
  logIn(userName: string, password: string): SessionRequest
  renew(refreshToken: string): SessionRequest
  logOut(pair: Pair): SessionRequest
  /** The tokens in the reply to a login or a renewal. */
  pairOf(reply: unknown): Pair
  /** The user of the session. @throws RequestError */
  readUser(): Promise<User>
  /** Code of the refusal of a wrong name or password. */
  readonly wrongCode: string
  /** Sets a new password where the login was refused with the code `PasswordExpired`. */
  readonly replacePassword?: (userName: string, old: string, fresh: string) => SessionRequest
}

/** `starting`: the session of this tab, or of another one, is looked for. */
export const phase = signal<'starting' | 'out' | 'in'>('starting')
export const user = signal<User | undefined>(undefined)
/** The highest of some roles; undefined where there are none. */
export const highestRole = (roles: readonly Role[]): Role | undefined =>
  ranks.findLast((each) => roles.includes(each))

/** Whether the role of the user is at least this one. */
export const hasRole = (needed: Role): boolean =>
  user.value !== undefined && ranks.indexOf(user.value.role) >= ranks.indexOf(needed)
export const isAdmin = computed(() => hasRole('admin'))
/** The session has ended while its page is open: the page stays, below a login. */
export const hasEnded = signal(false)
/** Seconds until the session ends for want of input; undefined while that is not near. */
export const endsInSeconds = signal<number | undefined>(undefined)

const idleMs = 30 * 60_000
const warningMs = 2 * 60_000
const storageKey = 'refreshToken'

let protocol: SessionProtocol

/** Names the API of this program; before the first use of the session. */
export const useProtocol = (given: SessionProtocol): void => {
  protocol = given
}

/** The protocol of this program. */
export const sessionProtocol = (): SessionProtocol => protocol

let pair: Pair | undefined
/** Last use of the pages in any tab: an input, or work that goes on. */
let lastUse = Date.now()
/** When this tab has told the others of its use. */
let lastTold = 0
/** Work in progress that keeps the session without input of the user, for example an upload. */
const working = new Set<object>()

/** Keeps the session while this work lasts. @returns ends it */
export function keepSession(): () => void {
  const work = {}
  working.add(work)
  return () => working.delete(work)
}

type Message =
  | { readonly kind: 'ask' }
  /** To a tab that has none. */
  | { readonly kind: 'answer'; readonly pair: Pair }
  /** A new one, for all; with a login perhaps of another user. */
  | { readonly kind: 'pair'; readonly pair: Pair; readonly isLogin?: true }
  | { readonly kind: 'use' }
  | { readonly kind: 'out' }

const tabs = new BroadcastChannel('session')
const tell = (message: Message) => tabs.postMessage(message)
const waiting = new Set<() => void>()

tabs.addEventListener('message', ({ data }: MessageEvent<Message>) => {
  if (data.kind === 'ask' && pair) tell({ kind: 'answer', pair })
  if (data.kind === 'use') lastUse = Date.now()
  if (data.kind === 'out') forget()
  // An answer may be older than what this tab has got meanwhile.
  if (data.kind === 'pair' || (data.kind === 'answer' && !pair)) {
    keep(data.pair)
    for (const done of waiting) done()
    // Another tab has logged in.
    if (phase.value !== 'in' || hasEnded.value || (data.kind === 'pair' && data.isLogin))
      void enter().catch(() => {
        // Whose tokens these are is not known.
        if (phase.value === 'in') hasEnded.value = true
      })
  }
})

function keep(given: Pair): void {
  pair = given
  sessionStorage.setItem(storageKey, given.RefreshToken)
}

function drop(): void {
  pair = undefined
  sessionStorage.removeItem(storageKey)
}

function forget(): void {
  drop()
  forgetRead()
  user.value = undefined
  hasEnded.value = false
  phase.value = 'out'
}

const isIdle = () => working.size === 0 && Date.now() - lastUse > idleMs

/** End of life of the access token, milliseconds since 1970 by the clock of the host. */
function expiryOf(token: string): number {
  const [, claims = ''] = token.split('.')
  const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { exp: number }
  return exp * 1_000
}

const sendFor = ({ path, ...options }: SessionRequest) => send(path, options)

/** Exchanges the refresh token, in one tab at a time. @param used the token that was refused @returns whether there is a usable pair */
async function renew(used = pair?.Authorization): Promise<boolean> {
  if (isIdle()) return false
  return navigator.locks.request('session', async () => {
    const isRenewed = () => pair !== undefined && pair.Authorization !== used
    // Another tab, or another request of this one, was quicker. The word of a tab may come after its lock.
    if (!isRenewed()) await nextPair()
    if (isRenewed()) return true
    const refreshToken = sessionStorage.getItem(storageKey)
    if (refreshToken === null) return false
    const reply = await sendFor(protocol.renew(refreshToken))
    if (reply.status === 401) drop()
    if (!reply.ok) return false
    const renewed = protocol.pairOf(await jsonOf(reply))
    keep(renewed)
    tell({ kind: 'pair', pair: renewed })
    return true
  })
}

useCredentials({
  token: () => pair?.Authorization,
  renew,
  onRefused() {
    if (user.value) hasEnded.value = true
  },
})

async function enter(): Promise<void> {
  const now = await protocol.readUser()
  // What another user has read is not theirs.
  if (user.value && user.value.userName !== now.userName) forgetRead()
  user.value = now
  hasEnded.value = false
  phase.value = 'in'
}

/** @throws RequestError */
export async function logIn(username: string, password: string): Promise<void> {
  pair = undefined
  const reply = await sendFor(protocol.logIn(username, password))
  if (!reply.ok) throw await refusalOf(reply)
  const begun = protocol.pairOf(await jsonOf(reply))
  lastUse = Date.now()
  keep(begun)
  await enter()
  tell({ kind: 'pair', pair: begun, isLogin: true })
}

/** The tokens of this tab are forgotten whether or not this is heard; there the session ends by itself. */
async function endThere(): Promise<void> {
  if (!pair) return
  const { path, ...options } = protocol.logOut(pair)
  await open(path, options).catch(() => undefined)
}

export async function logOut(): Promise<void> {
  // It has the tokens with it, and may wait for a host that does not answer.
  const ended = endThere()
  tell({ kind: 'out' })
  forget()
  await ended
}

/** Looks for a session: of another tab, or that of this tab before it was loaded again. */
export async function resume(): Promise<void> {
  // The host does not answer, or cannot: the session may be good.
  const later = () => setTimeout(() => void resume(), 2_000)
  await askTabs()
  if (!pair && sessionStorage.getItem(storageKey) === null) {
    phase.value = 'out'
    return
  }
  try {
    if (pair ?? (await renew())) await enter()
    // It was dropped where it was refused.
    else if (sessionStorage.getItem(storageKey) === null) forget()
    else later()
  } catch (error) {
    if (error instanceof RequestError && (error.status === 0 || error.status >= 500)) later()
    else forget()
  }
}

/** Other tabs answer at once, or there are none. */
async function askTabs(): Promise<void> {
  tell({ kind: 'ask' })
  await nextPair()
}

/** Waits a moment for the word of another tab. */
const nextPair = () =>
  new Promise<void>((resolve) => {
    const done = () => {
      waiting.delete(done)
      resolve()
    }
    waiting.add(done)
    setTimeout(done, 150)
  })

function noteUse(): void {
  lastUse = Date.now()
  endsInSeconds.value = undefined
  // The others need not know each key, but have to know of use without a pause: an idle tab ends the session of all.
  if (Math.abs(lastUse - lastTold) < 15_000) return
  lastTold = lastUse
  tell({ kind: 'use' })
}

/** Keeps the session while the page is used, warns before it ends, and ends it. Called once by the page. */
export function watchUse(): void {
  for (const name of ['pointerdown', 'keydown', 'wheel'] as const)
    addEventListener(name, noteUse, { passive: true, capture: true })
  setInterval(() => {
    if (phase.value !== 'in' || hasEnded.value || !pair) return
    // When the work is done, there are 30 minutes to see it.
    if (working.size > 0) noteUse()
    const leftMs = idleMs - (Date.now() - lastUse)
    endsInSeconds.value = leftMs > warningMs ? undefined : Math.max(0, Math.ceil(leftMs / 1_000))
    if (leftMs <= 0) void endIdle()
    // In the last third of its life, so that no request has to wait for it.
    else if (expiryOf(pair.Authorization) - hostNow() < 5 * 60_000) void renew().catch(() => undefined)
  }, 1_000)
}

async function endIdle(): Promise<void> {
  endsInSeconds.value = undefined
  hasEnded.value = true
  await endThere()
  drop()
}

/** The user goes on, as any input says. */
export const goOn = noteUse
