from margotree.problem import topology as tp


def test_numbering_of_a_depth_three_tree():
    assert tp.n_nodes(3) == 7
    assert list(tp.upper(3)) == [0, 1, 2]
    assert list(tp.last(3)) == [3, 4, 5, 6]
    assert list(tp.leaves(3)) == list(range(7, 15))


def test_a_stump_has_no_upper_node():
    assert list(tp.upper(1)) == []
    assert list(tp.last(1)) == [0]


def test_parent_inverts_the_children():
    for t in range(100):
        assert tp.parent(tp.left(t)) == t == tp.parent(tp.right(t))
        assert tp.level(tp.left(t)) == tp.level(tp.right(t)) == tp.level(t) + 1
    assert tp.parent(0) == -1


def test_last_nodes_below_agree_with_the_subtree():
    for depth in range(1, 6):
        for t in range(tp.n_nodes(depth)):
            below = [s for s in tp.subtree(t, depth) if s in tp.last(depth)]
            assert list(tp.last_below(t, depth)) == below


def test_left_and_right_partition_what_is_below():
    for depth in range(2, 6):
        for t in tp.upper(depth):
            both = list(tp.last_left(t, depth)) + list(tp.last_right(t, depth))
            assert both == list(tp.last_below(t, depth))


def test_path_leads_to_the_node():
    for goal in range(31):
        t = 0
        for node, side in tp.path_to(goal):
            assert node == t
            t = tp.left(t) if side < 0 else tp.right(t)
        assert t == goal
