import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { contentErrors } from '../../../src/content/codes.ts'
import type { ContentDefinitions, PublishedDefinition } from '../../../src/content/store/definitions.ts'
import { createContentAccess } from '../../../src/content/store/find.ts'
import type { OpenStore } from '../../../src/content/store/open-store.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { hexOfBytes, publishInProcess, writeUpload } from '../../support/content-bundles.ts'
import { driverStore } from '../../support/content-driver/store.ts'
import { storedContent } from '../../support/stored-content.ts'
import { waitFor } from '../../support/wait-for.ts'

let folder: string
let store: OpenStore

function start(definitions?: ContentDefinitions): void {
  store = driverStore(folder, publishInProcess, definitions)
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-content-'))
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

const [red, green, blue] = [Buffer.from('red'), Buffer.from('green'), Buffer.from('blue')]

const { publish, names, fileOf } = storedContent(
  () => store,
  () => folder,
)

/** Definitions whose examination waits, by the name of the bundle. */
function gatedDefinitions(events: string[], gates: Readonly<Record<string, Promise<unknown>>>) {
  const definitions: { -readonly [Verb in keyof ContentDefinitions]: ContentDefinitions[Verb] } = {
    async examineBundled({ bundle: { name } }) {
      events.push(`examine ${name}`)
      await gates[name]
      return {
        place: async () => void events.push(`place ${name}`),
        discard: async () => void events.push(`discard ${name}`),
      }
    },
    bundlesChanged: async () => undefined,
  }
  return definitions
}

it('the definition of a bundle is examined before it is published, and the newest bundle with one is told', async () => {
  const told: (readonly PublishedDefinition[])[] = []
  const placed: string[] = []
  const definitions: ContentDefinitions = {
    async examineBundled({ file, bundle }) {
      const text = await readFile(file, 'utf8')
      if (text === 'bad') throw new AppError(contentErrors.ContentInUse, 'a bad definition')
      return {
        place: async () => void placed.push(bundle.name),
        discard: async () => void placed.push(`not ${bundle.name}`),
      }
    },
    bundlesChanged: async (bundled) => void told.push(bundled),
  }
  start(definitions)
  await expect(
    publish({ name: 'bad', blobs: [], definition: Buffer.from('bad'), publishedAt: 5 }),
  ).rejects.toThrow('a bad definition')
  const one = await publish({ name: 'one', blobs: [], definition: red, publishedAt: 10 })
  const { uid: bundleUid, name } = one.bundle
  expect(told.at(-1)).toEqual([{ bundleUid, name, publishedAt: 10, file: fileOf(red), sizeBytes: 3 }])
  const two = await publish({ name: 'two', blobs: [], definition: green, publishedAt: 20 })
  const both = [{ bundleUid: two.bundle.uid }, { bundleUid }]
  expect(told.at(-1)).toMatchObject(both)
  // A definition whose blob is damaged is still that of the newest bundle.
  await store.setAside([hexOfBytes(green)])
  await publish({ name: 'three', blobs: [blue] })
  expect(told.at(-1)).toMatchObject(both)
  await store.remove(two.bundle.uid, () => undefined)
  expect(told.at(-1)).toMatchObject([{ bundleUid: one.bundle.uid }])
  await store.remove(one.bundle.uid, () => undefined)
  expect(told.at(-1)).toEqual([])
  expect(placed).toEqual(['one', 'not one', 'two', 'not two'])
  expect(names()).toEqual(['three'])
})

it('while the definition of a bundle is examined, other bundles are published and removed', async () => {
  const gate = Promise.withResolvers<undefined>()
  const events: string[] = []
  start(gatedDefinitions(events, { one: gate.promise }))
  const one = publish({ name: 'one', blobs: [red], definition: green })
  await waitFor(() => expect(events).toEqual(['examine one']))
  const two = await publish({ name: 'two', blobs: [red, blue] })
  expect(names()).toEqual(['two'])
  await store.remove(two.bundle.uid, () => undefined)
  gate.resolve(undefined)
  await one
  expect(names()).toEqual(['one'])
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
  expect(events).toEqual(['examine one', 'place one', 'discard one'])
})

it('a bundle that was published while its other upload was examined stays one bundle', async () => {
  const gate = Promise.withResolvers<undefined>()
  const events: string[] = []
  start(gatedDefinitions(events, { slow: gate.promise }))
  const [slow, fast] = [await store.stage(), await store.stage()]
  const same = { name: 'one', blobs: [red], definition: green }
  const [slowOrder, fastOrder] = [await writeUpload(slow, same), await writeUpload(fast, same)]
  const late = store.publish(slow, { ...slowOrder, bundle: { ...slowOrder.bundle, name: 'slow' } })
  await waitFor(() => expect(events).toEqual(['examine slow']))
  const first = await store.publish(fast, fastOrder)
  gate.resolve(undefined)
  expect(await late).toMatchObject({ isNew: false, bundle: { uid: first.bundle.uid } })
  expect(names()).toEqual(['one'])
  expect(events).toEqual(['examine slow', 'examine one', 'place one', 'discard one', 'discard slow'])
})

it('an upload whose bundle is removed before its turn becomes a bundle of its own', async () => {
  start()
  const first = await publish({ name: 'one', blobs: [red] })
  const upload = await store.stage()
  const order = await writeUpload(upload, { name: 'one', blobs: [red] })
  const removal = store.remove(first.bundle.uid, () => undefined)
  const again = await store.publish(upload, order)
  await removal
  expect(again).toMatchObject({ isNew: true, bundle: { uid: upload.uid } })
  expect(names()).toEqual(['one'])
  expect(await readFile(fileOf(red), 'utf8')).toBe('red')
})

it.each<[string, (again: OpenStore) => Promise<unknown>]>([
  ['a read', (again) => again.open()],
  ['pins', (again) => createContentAccess(again).renewPins('cluster', [])],
  ['an upload', (again) => again.stage()],
  ['the sweep', (again) => again.sweep()],
])('the first opening by %s tells the definitions, and waits for no examination', async (what, open) => {
  start()
  const { bundle } = await publish({ name: 'one', blobs: [], definition: red })
  await store.close()
  const gate = Promise.withResolvers<undefined>()
  const told: string[][] = []
  start({
    ...gatedDefinitions([], {}),
    async bundlesChanged(bundled) {
      told.push(bundled.map(({ bundleUid }) => bundleUid))
      await gate.promise
    },
  })
  expect(store.isAnnounced()).toBe(false)
  const opened = open(store)
  // What changes the store waits for the slots, and holds nothing else up.
  if (what === 'the sweep') await waitFor(() => expect(store.isAnnounced()).toBe(true))
  else await opened
  expect(told).toEqual([[bundle.uid]])
  await store.open()
  expect(names()).toEqual(['one'])
  expect(told).toHaveLength(1)
  gate.resolve(undefined)
  await opened
})

it('a store that cannot be opened at the start tells the definitions when it can', async () => {
  start()
  const { bundle } = await publish({ name: 'one', blobs: [], definition: red })
  await store.close()
  const bundles = join(folder, 'content', 'bundles')
  await rename(bundles, `${bundles}.away`)
  await writeFile(bundles, '')
  const told: string[][] = []
  start({
    ...gatedDefinitions([], {}),
    bundlesChanged: async (bundled) => void told.push(bundled.map(({ bundleUid }) => bundleUid)),
  })
  await expect(createContentAccess(store).renewPins('cluster', [])).rejects.toThrow()
  expect(store.isAnnounced()).toBe(false)
  await rm(bundles)
  await rename(`${bundles}.away`, bundles)
  await store.recover()
  expect(told).toEqual([[bundle.uid]])
})

it('while the definition of an older bundle is examined again, bundles are published', async () => {
  const gate = Promise.withResolvers<undefined>()
  const events: string[] = []
  const definitions = gatedDefinitions(events, {})
  start(definitions)
  await publish({ name: 'one', blobs: [], definition: red, publishedAt: 10 })
  const two = await publish({ name: 'two', blobs: [], definition: green, publishedAt: 20 })
  definitions.bundlesChanged = async ([newest]) => {
    events.push(`newest ${newest?.name}`)
    await gate.promise
  }
  const removal = store.remove(two.bundle.uid, () => undefined)
  await waitFor(() => expect(events.at(-1)).toBe('newest one'))
  const three = publish({ name: 'three', blobs: [blue], publishedAt: 30 })
  await waitFor(() => expect(names()).toEqual(['three', 'one']))
  gate.resolve(undefined)
  await Promise.all([removal, three])
})
