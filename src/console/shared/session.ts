// The session of the pages: the access token in the memory of the page, the refresh token in the storage of the tab, nothing in cookies. All tabs
// of one browser share one session: a second use of an old refresh token would end it, so one tab renews at a time, and tells the others.
import { computed, signal } from '@preact/signals'
import {
  change,
  forgetRead,
  get,
  hostNow,
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

export interface User {
  readonly userName: string
  readonly role: 'admin' | 'viewer'
}

/** `starting`: the session of this tab, or of another one, is looked for. */
export const phase = signal<'starting' | 'out' | 'in'>('starting')
export const user = signal<User | undefined>(undefined)
export const isAdmin = computed(() => user.value?.role === 'admin')
/** The session has ended while its page is open: the page stays, below a login. */
export const hasEnded = signal(false)
/** Seconds until the session ends for want of input; undefined while that is not near. */
export const endsInSeconds = signal<number | undefined>(undefined)

const idleMs = 30 * 60_000
const warningMs = 2 * 60_000
const storageKey = 'refreshToken'

let pair: Pair | undefined
let lastInput = Date.now()
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
  | { readonly kind: 'pair'; readonly pair: Pair }
  | { readonly kind: 'input' }
  | { readonly kind: 'out' }

const tabs = new BroadcastChannel('session')
const tell = (message: Message) => tabs.postMessage(message)
const waiting = new Set<() => void>()

tabs.addEventListener('message', ({ data }: MessageEvent<Message>) => {
  if (data.kind === 'ask' && pair) tell({ kind: 'pair', pair })
  if (data.kind === 'input') lastInput = Date.now()
  if (data.kind === 'out') forget()
  if (data.kind === 'pair') {
    keep(data.pair)
    for (const done of waiting) done()
    // Another tab has logged in.
    if (phase.value !== 'in' || hasEnded.value) void enter().catch(() => undefined)
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

const isIdle = () => working.size === 0 && Date.now() - lastInput > idleMs

/** End of life of the access token, milliseconds since 1970 by the clock of the host. */
function expiryOf(token: string): number {
  const [, claims = ''] = token.split('.')
  const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { exp: number }
  return exp * 1_000
}

const json = (body: object): RequestOptions => ({ method: 'POST', body })

/** Exchanges the refresh token, in one tab at a time. @returns whether there is a usable pair */
async function renew(): Promise<boolean> {
  const before = pair
  if (isIdle()) return false
  return navigator.locks.request('session', async () => {
    // Another tab was quicker.
    if (pair && pair !== before) return true
    const refreshToken = sessionStorage.getItem(storageKey)
    if (refreshToken === null) return false
    const reply = await send('/v1/users/default/token/renewal', json({ refreshToken }))
    if (reply.status === 401) drop()
    if (!reply.ok) return false
    const renewed = (await reply.json()) as Pair
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
  user.value = await get<User>('/v1/users/current')
  hasEnded.value = false
  phase.value = 'in'
}

/** @throws RequestError */
export async function logIn(username: string, password: string): Promise<void> {
  pair = undefined
  const reply = await send('/v1/users/default/login?setCookie=false', {
    ...json({ username, password }),
    // PAM answers in its own time, as where a directory is asked.
    timeoutMs: 60_000,
  })
  if (!reply.ok) throw await refusalOf(reply)
  const { Token } = (await reply.json()) as { Token: Pair }
  // What another user has read is not theirs.
  if (user.value && user.value.userName !== username) forgetRead()
  lastInput = Date.now()
  keep(Token)
  await enter()
  tell({ kind: 'pair', pair: Token })
}

export async function logOut(): Promise<void> {
  // The tokens of this tab are forgotten whether or not the host hears it; there the session ends by itself.
  await change('POST', '/v1/users/default/logout').catch(() => undefined)
  tell({ kind: 'out' })
  forget()
}

/** Looks for a session: of another tab, or that of this tab before it was loaded again. */
export async function resume(): Promise<void> {
  await askTabs()
  if (!pair && sessionStorage.getItem(storageKey) === null) {
    phase.value = 'out'
    return
  }
  try {
    if (!pair && !(await renew())) {
      forget()
      return
    }
    await enter()
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== 0) forget()
    // The host does not answer: the session may be good.
    else setTimeout(() => void resume(), 2_000)
  }
}

/** Other tabs answer at once, or there are none. */
async function askTabs(): Promise<void> {
  tell({ kind: 'ask' })
  await new Promise<void>((resolve) => {
    const done = () => {
      waiting.delete(done)
      resolve()
    }
    waiting.add(done)
    setTimeout(done, 150)
  })
}

function noteInput(): void {
  const now = Date.now()
  // The others need not know each key.
  if (now - lastInput > 15_000) tell({ kind: 'input' })
  lastInput = now
  endsInSeconds.value = undefined
}

/** Keeps the session while the page is used, warns before it ends, and ends it. Called once by the page. */
export function watchUse(): void {
  for (const name of ['pointerdown', 'keydown', 'wheel'] as const)
    addEventListener(name, noteInput, { passive: true, capture: true })
  setInterval(() => {
    if (phase.value !== 'in' || hasEnded.value || !pair) return
    const leftMs = working.size > 0 ? idleMs : idleMs - (Date.now() - lastInput)
    endsInSeconds.value = leftMs > warningMs ? undefined : Math.max(0, Math.ceil(leftMs / 1_000))
    if (leftMs <= 0) void endIdle()
    // In the last third of its life, so that no request has to wait for it.
    else if (expiryOf(pair.Authorization) - hostNow() < 5 * 60_000) void renew().catch(() => undefined)
  }, 1_000)
}

async function endIdle(): Promise<void> {
  endsInSeconds.value = undefined
  hasEnded.value = true
  await change('POST', '/v1/users/default/logout').catch(() => undefined)
  drop()
}

/** The user goes on, as any input says. */
export const goOn = noteInput
