// Publishes, completes and deletes bundles until it is killed: driver.cjs <folder> <seed>. Says on standard output what it begins and what
// it has done.
import { writeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createRandom } from '../random.ts'
import { hexOfBytes, publishInProcess, writeUpload } from '../content-bundles.ts'
import { driverStore } from './store.ts'

const [folder = '', seed = '1'] = process.argv.slice(2)
const random = createRandom(Number(seed))
const say = (text: string) => writeSync(1, `${text}\n`)
const blob = (number: number) => Buffer.from(`blob ${number} `.repeat(50))
const store = driverStore(folder, publishInProcess)

/** The bundle of a turn, the same each time. */
function bundleOf(turn: number) {
  const own = createRandom(Number(seed) * 100_000 + turn)
  const some = (count: number) => Array.from({ length: count }, () => blob(own.below(40)))
  return { name: `${seed} ${turn}`, blobs: some(12), optional: some(4) }
}

/** Uploads a bundle, with one of its optional blobs. */
async function stage(turn: number) {
  const upload = await store.stage()
  const bundle = bundleOf(turn)
  const one = random.pick(bundle.optional)
  const given = [...bundle.blobs, one]
  const linked = await store.linkBlobs(
    upload,
    given.map((each) => `sha256:${hexOfBytes(each)}`),
  )
  const held = new Set(linked.map((digest) => digest.slice(7)))
  const order = await writeUpload(upload, bundle, held)
  if (!held.has(hexOfBytes(one))) await writeFile(join(upload.folder, 'blobs', hexOfBytes(one)), one)
  return { upload, order }
}

async function run(): Promise<void> {
  await store.open()
  say('open')
  for (let turn = 0; ; turn += 1) {
    const bundles = store.index().list()
    if (random.isChosen(bundles.length / 8)) {
      const victim = random.pick(bundles)
      say(`deleting ${victim.uid}`)
      await store.remove(victim.uid, () => undefined)
      say(`deleted ${victim.uid}`)
      continue
    }
    const own = bundles.filter(({ name }) => name.startsWith(`${seed} `))
    if (own.length > 0 && random.isChosen(0.4)) {
      const known = random.pick(own)
      const { upload, order } = await stage(Number(known.name.split(' ')[1]))
      say(`completing ${known.uid}`)
      const { addedBlobs } = await store.publish(upload, order)
      if (addedBlobs > 0) say(`completed ${known.uid}`)
      continue
    }
    const { upload, order } = await stage(turn)
    say(`publishing ${upload.uid}`)
    await store.publish(upload, order)
    say(`published ${upload.uid}`)
  }
}

void run()
