import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { describeConfiguration, putConfigurationBack } from '../../../src/power/remove-configuration.ts'

function createConfiguration() {
  const root = mkdtempSync(join(tmpdir(), 'edgehostd-configuration-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const paths = {
    folder: join(root, 'config.d'),
    main: join(root, 'config.yaml'),
    packaged: join(root, 'packaged.yaml'),
  }
  mkdirSync(paths.folder)
  writeFileSync(paths.main, 'api: {port: 6000}\n', { mode: 0o600 })
  writeFileSync(paths.packaged, '# nothing is set\n')
  writeFileSync(join(paths.folder, 'site.yaml'), 'log: {}\n')
  writeFileSync(join(paths.folder, 'note.txt'), 'kept')
  return paths
}

it('the configuration is as the package has it, once and again', async () => {
  const paths = createConfiguration()
  expect(await describeConfiguration(paths)).toEqual([
    join(paths.folder, 'site.yaml'),
    `${paths.main}, which is then as the package has it`,
  ])
  expect(await putConfigurationBack(paths)).toBe(2)
  expect(readFileSync(paths.main, 'utf8')).toBe('# nothing is set\n')
  expect(statSync(paths.main).mode & 0o777).toBe(0o644)
  expect(existsSync(join(paths.folder, 'site.yaml'))).toBe(false)
  expect(readFileSync(join(paths.folder, 'note.txt'), 'utf8')).toBe('kept')
  expect(await describeConfiguration(paths)).toEqual([])
  expect(await putConfigurationBack(paths)).toBe(0)
})

it('a file of the package that is gone comes back', async () => {
  const paths = createConfiguration()
  rmSync(paths.main)
  expect(await putConfigurationBack(paths)).toBe(2)
  expect(readFileSync(paths.main, 'utf8')).toBe('# nothing is set\n')
})

it('without the copy of the package nothing is removed', async () => {
  const paths = createConfiguration()
  rmSync(paths.packaged)
  await expect(putConfigurationBack(paths)).rejects.toThrow(/packaged\.yaml is missing; install the package/)
  expect(existsSync(join(paths.folder, 'site.yaml'))).toBe(true)
})
