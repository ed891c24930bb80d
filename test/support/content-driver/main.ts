// Publishes and deletes bundles until it is killed: driver.cjs <folder> <seed>. Says on standard output what it begins and what
// it has done.
import { writeSync } from 'node:fs'
import { createRandom } from '../random.ts'
import { hexOfBytes, publishInProcess, writeUpload } from '../content-bundles.ts'
import { driverStore } from './store.ts'

const [folder = '', seed = '1'] = process.argv.slice(2)
const random = createRandom(Number(seed))
const say = (text: string) => writeSync(1, `${text}\n`)
const blob = (number: number) => Buffer.from(`blob ${number} `.repeat(50))
const store = driverStore(folder, publishInProcess)

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
    const upload = await store.stage()
    const blobs = Array.from({ length: 12 }, () => blob(random.below(40)))
    const linked = await store.linkBlobs(
      upload,
      blobs.map((each) => `sha256:${hexOfBytes(each)}`),
    )
    const held = new Set(linked.map((digest) => digest.slice(7)))
    const order = await writeUpload(upload, { name: `${seed} ${turn}`, blobs }, held)
    say(`publishing ${upload.uid}`)
    await store.publish(upload, order)
    say(`published ${upload.uid}`)
  }
}

void run()
