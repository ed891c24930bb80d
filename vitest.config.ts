import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take longer than half a minute. They begin first, so that no one runs alone at the end: vitest sorts within each project, and in a new checkout by size. */
const longest = [
  ...['helm', 'ctl-remote', 'pack-removal', 'drift', 'unpack', 'prepare-objects', 'yaml-costs', 'fuzz'],
  ...['lost-state', 'change-secret', 'reserve'],
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/${name}.real.test.ts`))
      return at === -1 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}

/** Tests on this machine. The rooms that both programs share take the names of `program`. */
function onThisMachine(
  program: string | undefined,
  test: TestProjectInlineConfiguration['test'],
): TestProjectInlineConfiguration {
  return {
    extends: true,
    ...(program === undefined ? {} : { define: { __PROGRAM__: JSON.stringify(program) } }),
    test: {
      globalSetup: ['test/support/temporary-folder.ts'],
      // Only ends what hangs: a busy machine takes its time.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      // Tests wait for the disk, for delays and for other processes about as long as they compute.
      maxWorkers: 3,
      maxConcurrency: 10,
      ...test,
    },
  }
}

/** Tests of `make test`. Half of their time would be new workers and their imports, so a worker runs many files; a file leaves nothing behind. */
const quick = (name: string, include: string[], program?: string) =>
  onThisMachine(program, { name, include, exclude: ['test/**/*.real.test.ts'], isolate: false })

/** Tests of `make test-real`: a real Kubernetes, series of kills, very many files, delays of PAM. */
const real = (name: string, include: string[], program?: string) => onThisMachine(program, { name, include })

export default defineConfig({
  test: {
    globals: false,
    restoreMocks: true,
    env: { TZ: 'UTC' },
    sequence: { sequencer: LongestFirst },
    // What is waited for comes; a busy machine takes its time.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      quick('unit', ['test/{unit,api,host}/**/*.test.ts']),
      quick('platform', ['test/platform/**/*.test.ts'], 'edgeplatformd'),
      real('real', ['test/{unit,api,host}/**/*.real.test.ts']),
      real('real-platform', ['test/platform/**/*.real.test.ts'], 'edgeplatformd'),
      // Of `make screens`.
      real('screens', ['test/screens/{host,lists,restart,session}.test.ts']),
      real('screens-platform', ['test/screens/platform.test.ts'], 'edgeplatformd'),
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: ['test/e2e/cluster/**'],
          globalSetup: ['test/e2e/host/global-setup.ts'],
          testTimeout: 360_000,
          // The first host of a kind waits for debootstrap.
          hookTimeout: 900_000,
          // Hosts mostly wait.
          maxWorkers: 4,
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e-cluster',
          include: ['test/e2e/cluster/**/*.test.ts'],
          globalSetup: ['test/e2e/host/global-setup.ts'],
          testTimeout: 900_000,
          hookTimeout: 900_000,
          // A host with Kubernetes takes a core or more, and what it does within time limits has to get one.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e-long',
          include: ['test/e2e-long/**/*.test.ts'],
          globalSetup: ['test/e2e/host/global-setup.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          // Each takes all cores for minutes.
          maxWorkers: 1,
        },
      },
    ],
  },
})
