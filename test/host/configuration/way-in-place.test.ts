import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { environmentOf } from '../../../src/configuration/content.ts'
import { readHostWay } from '../../../src/configuration/way-in-place.ts'

it('the way in place is read as it was written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-way-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const places = { environment: join(folder, 'proxy.env'), authorities: join(folder, 'authorities') }
  const none = await readHostWay(places)
  expect([none.proxyFor('https://platform.example'), none.authorities()]).toEqual([undefined, []])
  const httpsProxy = 'http://edge:p%25%22s@proxy.example:3128'
  const configured = {
    caCerts: [],
    certificates: [],
    httpProxy: 'http://other.example:3128',
    httpsProxy,
    noProxy: '',
  }
  await writeFile(places.environment, environmentOf(configured, ['.plant.example', '192.0.2.0/24']))
  await mkdir(places.authorities)
  await writeFile(join(places.authorities, 'edgehostd-0123456789abcdef.crt'), 'PEM\n')
  await writeFile(join(places.authorities, 'other.crt'), 'OTHER\n')
  const way = await readHostWay(places)
  expect(
    ['https://platform.example', 'https://a.plant.example', 'https://192.0.2.7', 'http://x.example'].map(
      (url) => way.proxyFor(url),
    ),
  ).toEqual([httpsProxy, undefined, undefined, 'http://other.example:3128'])
  expect(way.authorities()).toEqual(['PEM\n'])
})
