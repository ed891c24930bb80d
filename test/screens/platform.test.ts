import { enterWith } from '../support/browser.ts'
import { fleetPassword, plantFleet } from '../support/planted-fleet.ts'
import { showPages } from '../support/screens.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { listeningPort } from '../support/https-server.ts'

showPages('platform', ['fleet'], async (_, pagesFolder) => {
  const platform = await createTestPlatform({ pagesFolder })
  const { project, well, cluster, profile } = await plantFleet(platform)
  await platform.start()
  const pages = [
    ...['hosts', `hosts/${well.uid}`, 'hosts/connect', 'clusters', `clusters/${cluster}`, 'clusters/new'],
    ...['profiles', `profiles/${profile}`, 'tokens', 'users', 'audit', 'more'],
  ]
  return {
    address: `https://127.0.0.1:${listeningPort(platform)}`,
    names: pages.map((name) => `projects/${project}/${name}`),
    enter: (page) => enterWith(page, 'admin@plant.example', fleetPassword),
    stop: () => platform.close(),
  }
})
