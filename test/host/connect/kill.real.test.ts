import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { dropInText } from '../../../src/connect/drop-in.ts'
import { discardStaged, placesOf, removeFiles } from '../../../src/connect/files.ts'

// The order of the steps is looked at, not the disk.
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
const driver = join(import.meta.dirname, '../../support/connecting-driver.ts')

it('kill -9 at any moment leaves a connection or none, and no rest after the next command', async () => {
  const folder = mkdtempSync(join(memory, 'connect-kill-'))
  const [configFile, stateDirectory] = [join(folder, 'etc', 'config.yaml'), join(folder, 'state')]
  mkdirSync(join(folder, 'etc'))
  mkdirSync(stateDirectory)
  const places = placesOf(configFile, stateDirectory)
  const text = dropInText({
    ...{ url: 'https://platform.example', caFile: places.authorities, registrationTokenFile: places.token },
  })
  const seen = { connected: 0, airgapped: 0 }
  for (let lines = 1; lines <= 12; lines += 1) {
    const child = spawn(process.execPath, [driver, configFile, stateDirectory, text], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let left = lines
    createInterface({ input: child.stdout }).on('line', () => {
      if ((left -= 1) === 0) child.kill('SIGKILL')
    })
    await once(child, 'close')
    expect(child.signalCode).toBe('SIGKILL')
    if (existsSync(places.dropIn)) {
      seen.connected += 1
      expect(readFileSync(places.dropIn, 'utf8')).toBe(text)
      expect(readFileSync(places.token, 'utf8')).toBe('the-token\n')
      expect(readFileSync(places.authorities, 'utf8')).toBe('the authorities\n')
    } else seen.airgapped += 1
  }
  expect(seen.connected * seen.airgapped).toBeGreaterThan(0)
  await discardStaged(places)
  await removeFiles(places)
  const left = [places.dropIn, places.token, places.authorities].flatMap((file) => readdirSync(dirname(file)))
  expect(left).toEqual(['config.d'])
  rmSync(folder, { recursive: true })
})
