import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globals: false,
    restoreMocks: true,
    env: { TZ: 'UTC' },
    // What is waited for comes; a busy machine takes its time.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/{unit,api,host}/**/*.test.ts'],
          globalSetup: ['test/support/temporary-folder.ts'],
          // Only ends what hangs: a busy machine takes its time.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // Tests wait for the disk, for delays and for other processes about as long as they compute.
          maxWorkers: 3,
          maxConcurrency: 10,
        },
      },
      {
        extends: true,
        // The rooms that both programs share take the names of this one.
        define: { __PROGRAM__: JSON.stringify('edgeplatformd') },
        test: {
          name: 'platform',
          include: ['test/platform/**/*.test.ts'],
          globalSetup: ['test/support/temporary-folder.ts'],
          // Only ends what hangs: a busy machine takes its time.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          maxWorkers: 3,
          maxConcurrency: 10,
        },
      },
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
