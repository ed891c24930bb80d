// Packs and profiles that are given to the platform from a browser. A file is looked at here as far as a browser can, so that what is plainly wrong is
// said before anything is sent; the platform examines it whole, and keeps nothing of what it refuses.
import { signal } from '@preact/signals'
import { bytes, count } from '../shared/format.ts'
import { get, RequestError, sendMeasured } from '../shared/request.ts'
import { keepSession } from '../shared/session.ts'
import { placeProject } from '../shared/shell.tsx'
import { membersOf, NotTar, type Member } from '../shared/tar.ts'
import { allOf } from './filter.ts'
import { scoped } from './platform.ts'

export const packsPath = '/v1/packs'
export const profilesPath = '/v1/clusterprofiles'

export type ImportKind = 'pack' | 'profile'
type FactName =
  'displayName' | 'layer' | 'clouds' | 'files' | 'size' | 'type' | 'packs' | 'variables' | 'secrets'

/** What a look at a file has found. */
export interface Look {
  /** Empty where the file does not say it to a browser. */
  readonly name: string
  readonly version: string
  readonly facts: readonly (readonly [FactName, string])[]
  /** Why it would be refused. */
  readonly problem?: 'notTar' | 'noPackFile' | 'notJson' | 'noName' | 'tooLarge' | 'unreadable' | 'exists'
}

/** Unpacked bytes of a compressed pack that the page holds; the platform looks into larger ones. */
const mostUnpacked = 64 * 2 ** 20
/** Of pack.json. */
const mostText = 2 ** 20
/** The limit of the platform. */
const largestProfile = 32 * 2 ** 20

/** Files and folders that the platform leaves out: of version control, of desktops. The list of `base/never-of-a-pack.ts`. */
const neverOfAPack = /^(?:\.(?:git|svn|hg|DS_Store|_.*)|__MACOSX)$/

const refused = (problem: NonNullable<Look['problem']>): Look => ({
  name: '',
  version: '',
  facts: [],
  problem,
})
/** The platform can read what the page cannot: Zstandard, YAML. */
const unknown: Look = { name: '', version: '', facts: [] }

/** Looks at a file that was chosen. @throws RequestError where the platform cannot be asked whether it has it */
export async function lookAt(kind: ImportKind, file: File): Promise<Look> {
  const look = await (kind === 'pack' ? lookAtPack(file) : lookAtProfile(file)).catch((error: unknown) => {
    if (error instanceof NotTar) return refused('notTar')
    // It was changed or removed since it was chosen.
    if (error instanceof DOMException) return refused('unreadable')
    throw error
  })
  if (look.problem !== undefined || look.name === '') return look
  const { name, version } = look
  const [same] = await findIn(kind, { 'metadata.name': name, 'spec.version': version })
  return same ? { ...look, problem: 'exists' } : look
}

interface Named {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly spec: { readonly version: string }
}

/** The packs or profiles of a scope whose fields have these values. @throws RequestError */
async function findIn(
  kind: ImportKind,
  fields: Readonly<Record<string, string>>,
  project = placeProject.value,
): Promise<readonly Named[]> {
  const parameters = {
    filters: allOf(Object.entries(fields)),
    fields: 'metadata.name,metadata.uid,spec.version',
    limit: '1',
  }
  const path = kind === 'pack' ? packsPath : profilesPath
  const { items } = await get<{ items: readonly Named[] }>(scoped(path, parameters, project))
  return items
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const objectIn = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {})
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

async function lookAtPack(file: Blob): Promise<Look> {
  const archive = await unpacked(file)
  if (!archive) return unknown
  const members: Member[] = []
  for await (const member of membersOf(archive))
    if (!member.name.split('/').some((part) => neverOfAPack.test(part))) members.push(member)
  // The folder of the pack is the top of the archive, or the only folder there.
  const described = members.find(({ name }) => /^(?:[^/]+\/)?pack\.json$/.test(name))
  if (!described) return refused('noPackFile')
  const { offset, size } = described
  const pack = size > mostText ? undefined : parsed(await archive.slice(offset, offset + size).text())
  if (!pack) return refused('notJson')
  const [name, version] = [textOf(pack.name), textOf(pack.version)]
  return {
    name,
    version,
    facts: [
      ['displayName', textOf(pack.displayName)],
      ['layer', textOf(pack.layer)],
      ['clouds', listOf(pack.cloudTypes).map(textOf).join(', ')],
      ['files', count(members.length)],
      ['size', bytes(members.reduce((sum, member) => sum + member.size, 0))],
    ],
    ...(name === '' || version === '' ? { problem: 'noName' } : {}),
  }
}

/** The tar of an archive; undefined where a browser cannot unpack it, or it would be too much. @throws NotTar */
async function unpacked(file: Blob): Promise<Blob | undefined> {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const begins = (one: number, other: number) => first === one && second === other
  // Zstandard.
  if (begins(0x28, 0xb5)) return undefined
  if (!begins(0x1f, 0x8b)) return file
  const pieces: BlobPart[] = []
  let size = 0
  const reader = file.stream().pipeThrough(new DecompressionStream('gzip')).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return new Blob(pieces)
      size += value.length
      if (size > mostUnpacked) {
        await reader.cancel()
        return undefined
      }
      pieces.push(value)
    }
  } catch (error) {
    if (error instanceof TypeError) throw new NotTar()
    throw error
  }
}

const isJson = (start: string) => /^\s*[{[]/.test(start)

async function lookAtProfile(file: Blob): Promise<Look> {
  if (file.size > largestProfile) return refused('tooLarge')
  const content = await file.text()
  if (!isJson(content)) return unknown
  const profile = parsed(content)
  if (!profile) return refused('notJson')
  const spec = objectIn(profile.spec)
  const template = objectIn(spec.template)
  const variables = listOf(spec.variables).map(objectIn)
  const [name, version] = [textOf(objectIn(profile.metadata).name), textOf(spec.version)]
  return {
    name,
    version,
    facts: [
      ['type', textOf(template.type)],
      [
        'packs',
        listOf(template.packs)
          .map(objectIn)
          .map((pack) => [textOf(pack.name), textOf(pack.tag)].filter(Boolean).join(' '))
          .join(', '),
      ],
      ['variables', count(variables.length)],
      ['secrets', count(variables.filter(({ isSensitive }) => isSensitive === true).length)],
    ],
    ...(name === '' || version === '' ? { problem: 'noName' } : {}),
  }
}

/** An import that runs, or has ended. */
export interface Import {
  readonly kind: ImportKind
  readonly fileName: string
  /** Where it goes; empty for the tenant. */
  readonly project: string
  readonly phase: 'sending' | 'examining' | 'done' | 'refused'
  readonly sent: number
  readonly total: number
  /** What the platform has taken. */
  readonly taken?: { readonly uid: string; readonly title: string }
  /** Why it was refused; absent where the file could not be read any more. */
  readonly error?: RequestError
}

/** The import of this page; it goes on while other pages are shown. */
export const running = signal<Import | undefined>(undefined)

let stop: AbortController | undefined

export const isImporting = (): boolean =>
  running.value?.phase === 'sending' || running.value?.phase === 'examining'

/** The import ends, and nothing is kept of it; or its end is not shown any more. */
export function dismissImport(): void {
  stop?.abort()
  running.value = undefined
}

/** Sends a file into the scope of the place. @param publish of a profile: its version never changes then */
export async function beginImport(kind: ImportKind, file: File, publish: boolean): Promise<void> {
  const control = new AbortController()
  stop = control
  const project = placeProject.value ?? ''
  let now: Import = { kind, fileName: file.name, project, phase: 'sending', sent: 0, total: file.size }
  const show = (more: Partial<Import>) => {
    now = { ...now, ...more }
    if (!control.signal.aborted) running.value = now
  }
  show({})
  const release = keepSession()
  const warn = (event: BeforeUnloadEvent) => event.preventDefault()
  addEventListener('beforeunload', warn)
  try {
    const { path, body, headers } = await (kind === 'pack'
      ? packRequest(file)
      : profileRequest(file, publish))
    const reply = await sendMeasured(path, {
      method: 'POST',
      body,
      headers,
      signal: control.signal,
      onBytes: (sent, total) => show({ sent, total, phase: sent < total ? 'sending' : 'examining' }),
    })
    const { uid } = JSON.parse(reply) as { uid: string }
    // What it is now says the platform.
    const [made] = await findIn(kind, { 'metadata.uid': uid }, project).catch(() => [])
    show({
      phase: 'done',
      taken: { uid, title: made ? `${made.metadata.name} ${made.spec.version}` : file.name },
    })
  } catch (error) {
    if (control.signal.aborted) return
    if (error instanceof RequestError) show({ phase: 'refused', error })
    else if (error instanceof DOMException) show({ phase: 'refused' })
    else throw error
  } finally {
    removeEventListener('beforeunload', warn)
    release()
  }
}

function packRequest(file: File) {
  const body = new FormData()
  body.append('uploadFile', file, file.name)
  return { path: scoped(packsPath), body, headers: {} }
}

async function profileRequest(file: File, publish: boolean) {
  const type = isJson(await file.slice(0, 1_024).text()) ? 'application/json' : 'application/yaml'
  return {
    path: scoped(`${profilesPath}/import`, { publish: String(publish) }),
    body: file,
    headers: { 'content-type': type },
  }
}
