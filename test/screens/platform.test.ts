import { enterWith } from '../support/browser.ts'
import { fleetPages, fleetPassword, plantFleet } from '../support/planted-fleet.ts'
import { showPages } from '../support/screens.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { listeningPort } from '../support/https-server.ts'

showPages('platform', ['fleet'], async (_, pagesFolder) => {
  const platform = await createTestPlatform({ pagesFolder })
  const fleet = await plantFleet(platform)
  await platform.start()
  return {
    address: `https://127.0.0.1:${listeningPort(platform)}`,
    names: fleetPages(fleet).map((name) => `projects/${fleet.project}/${name}`),
    enter: (page) => enterWith(page, 'admin@plant.example', fleetPassword),
    stop: () => platform.close(),
  }
})
