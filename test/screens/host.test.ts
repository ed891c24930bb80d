import { enterWith } from '../support/browser.ts'
import { hostBody } from '../support/host-body.ts'
import { plantCluster } from '../support/planted-cluster.ts'
import { playedInventory } from '../support/played-inventory.ts'
import { prepareProgram } from '../support/programs.ts'
import { showPages } from '../support/screens.ts'
import { createTestEdge } from '../support/test-edge.ts'
import { listeningPort } from '../support/https-server.ts'

const names = {
  nothing: ['', 'cluster', 'cluster/create', 'content'],
  cluster: [
    ...['', 'cluster', 'cluster/change', 'cluster/applications', 'cluster/revisions', 'cluster/access'],
    ...['network', 'access', 'audit', 'system', 'system/configuration', 'system/diagnosis', 'more'],
  ],
}

showPages('host', ['nothing', 'cluster'], async (state, pagesFolder) => {
  const edge = await createTestEdge({
    pagesFolder,
    hostBody: await hostBody({ isClusterPhase: state === 'cluster' }),
    inventoryProgram: playedInventory().program,
    prepareProgram: prepareProgram(),
  })
  if (state === 'cluster') plantCluster(edge)
  await edge.daemon.start()
  return {
    address: `https://127.0.0.1:${listeningPort(edge)}`,
    names: names[state],
    enter: (page) => enterWith(page, 'alice', 'alice pass'),
    stop: () => edge.stop(),
  }
})
